// SPDX-License-Identifier: Apache-2.0

// node peer.mjs human|face-api PHOTOGRAPH... prints how many faces the program finds and describes.
import fs from 'node:fs'
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
const sharp = require('sharp')
const [name, ...files] = process.argv.slice(2)
const home = `${import.meta.dirname}/node_modules/@vladmandic/${name}`
const wasm = require('@tensorflow/tfjs-backend-wasm')
const wasmHome = `${import.meta.dirname}/node_modules/@tensorflow/tfjs-backend-wasm/dist/`
wasm.setWasmPaths(wasmHome)
const tf = require('@tensorflow/tfjs')
const most = 20
// human-wasm asks fetch for its files
globalThis.fetch = async url => new Response(fs.readFileSync(new URL(url)))
const nets = {
  human: async () => {
    const { Human } = require(`${home}/dist/human.node-wasm.js`)
    const off = { enabled: false }
    const human = new Human({
      backend: 'wasm', wasmPath: wasmHome, modelBasePath: `file://${home}/models/`, debug: false, cacheSensitivity: 0,
      filter: off, gesture: off, body: off, hand: off, object: off, segmentation: off,
      face: { enabled: true, detector: { maxDetected: most, rotation: false }, mesh: off, iris: off, emotion: off,
        antispoof: off, liveness: off, description: { enabled: true } },
    })
    await human.load()
    return async t => (await human.detect(t)).face.length
  },
  'face-api': async () => {
    const api = require(`${home}/dist/face-api.node-wasm.js`)
    await api.tf.setBackend('wasm')
    await api.tf.ready()
    for (const n of [api.nets.ssdMobilenetv1, api.nets.faceLandmark68Net, api.nets.faceRecognitionNet]) await n.loadFromDisk(`${home}/model`)
    const o = new api.SsdMobilenetv1Options({ maxResults: most })
    return async t => (await api.detectAllFaces(t, o).withFaceLandmarks().withFaceDescriptors()).length
  },
}
const look = await nets[name]()
let faces = 0
for (const f of files) {
  const { data, info } = await sharp(f).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  const t = tf.tensor3d(data, [info.height, info.width, 3], 'int32')
  faces += await look(t)
  t.dispose()
}
console.log(faces)
