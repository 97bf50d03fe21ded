// SPDX-License-Identifier: Apache-2.0

package sink

import mqtt "github.com/eclipse/paho.mqtt.golang"

// Connected returns a connection that publishes by a client.
func Connected(b Broker, client mqtt.Client) *MQTT {
	m := newMQTT(b)
	m.begin(client)
	return m
}
