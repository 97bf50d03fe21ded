// SPDX-License-Identifier: Apache-2.0

// Package words holds the sentences of a login for users, in several languages.
//
// [Of] returns the language of an environment. [Language.Sentence] translates a word of the daemon into a sentence, and
// [Language.Refusal] an error. The PAM module, which is in C, has the same sentences in words.h, which the test of this
// package writes:
//
//	go test ./internal/words -update
package words

import (
	"fmt"
	"strings"
)

// Language is a language of this program.
type Language int

// Languages.
const (
	English Language = iota
	German
	French
	languages int = iota
)

// codes are the languages' codes (ISO 639-1).
var codes = [languages]string{"en", "de", "fr"}

// Of returns the language of an environment: that of the first of LC_ALL, LC_MESSAGES and LANG that is set. Without
// them, or for an unknown language, it is English.
func Of(getenv func(string) string) Language {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		locale := getenv(name)
		if locale == "" {
			continue
		}
		code := locale
		if i := strings.IndexAny(locale, "_.@"); i >= 0 {
			code = locale[:i]
		}
		for l, c := range codes {
			if c == code {
				return Language(l)
			}
		}
		return English
	}
	return English
}

// Say returns the sentence for a word, or for the name of a refusal, if there is one.
func (l Language) Say(word string, args ...any) (string, bool) {
	s, ok := catalogue[word]
	if !ok {
		return "", false
	}
	return fmt.Sprintf(s[l], args...), true
}

// Sentence returns the sentence for a word. An unknown word, from a newer service, is returned as it is.
func (l Language) Sentence(word string) string {
	if s, ok := l.Say(word); ok {
		return s
	}
	return word
}

// Refusal returns the sentence for a refusal with a name and a message, with advice. Wait is the number of
// seconds until the next try is allowed; 0 if it is not known.
func (l Language) Refusal(name, message string, wait uint32) string {
	if wait > 0 {
		s, _ := l.Say("Wait", wait)
		return s
	}
	if s, ok := l.Say(name); ok && l != English { // the service's own words say more
		return s
	}
	return message
}

// catalogue holds the sentences, by word.
var catalogue = map[string][languages]string{
	// The prompt of a login.
	"prompt": {
		"Password (or look into the camera and press Enter): ",
		"Passwort (oder in die Kamera sehen und Enter drücken): ",
		"Mot de passe (ou regardez la caméra et appuyez sur Entrée) : ",
	},

	// Results of a verification or an enrolment.
	"match": {"recognised", "erkannt", "reconnu"},
	"no-match": {
		"not recognised; use your password",
		"nicht erkannt; bitte das Passwort eingeben",
		"non reconnu ; utilisez votre mot de passe",
	},
	"give-password": {
		"recognised; give your password once, then your face is enough",
		"erkannt; bitte einmal das Passwort eingeben, dann genügt das Gesicht",
		"reconnu ; donnez une fois votre mot de passe, ensuite votre visage suffira",
	},
	"taken-for-picture": {
		"your face was taken for a picture; add more light, look straight into the camera and try again, or use your " +
			"password",
		"das Gesicht wurde für ein Bild gehalten; bitte für mehr Licht sorgen, gerade in die Kamera sehen und noch " +
			"einmal versuchen, oder das Passwort eingeben",
		"votre visage a été pris pour une image ; ajoutez de la lumière, regardez droit dans la caméra et réessayez, " +
			"ou utilisez votre mot de passe",
	},
	"no-face": {
		"nobody was seen; sit in front of the camera and try again, or use your password",
		"niemand war zu sehen; bitte vor die Kamera setzen und noch einmal versuchen, oder das Passwort eingeben",
		"personne n'a été vu ; placez-vous devant la caméra et réessayez, ou utilisez votre mot de passe",
	},
	"poor-picture": {
		"no picture was good enough; add more light and try again, or use your password",
		"kein Bild war gut genug; bitte mehr Licht machen und noch einmal versuchen, oder das Passwort eingeben",
		"aucune image n'était assez bonne ; ajoutez de la lumière et réessayez, ou utilisez votre mot de passe",
	},
	"error": {
		"the camera or the service has failed; use your password. The log tells the reason: journalctl -u faceauth",
		"die Kamera oder der Dienst hat versagt; bitte das Passwort eingeben. Der Grund steht im Protokoll: " +
			"journalctl -u faceauth",
		"la caméra ou le service a échoué ; utilisez votre mot de passe. La raison est dans le journal : journalctl " +
			"-u faceauth",
	},
	"no-camera": {
		"the camera cannot be opened; use your password. The log tells the reason: journalctl -u faceauth",
		"die Kamera lässt sich nicht öffnen; bitte das Passwort eingeben. Der Grund steht im Protokoll: journalctl -u " +
			"faceauth",
		"la caméra ne peut pas être ouverte ; utilisez votre mot de passe. La raison est dans le journal : " +
			"journalctl -u faceauth",
	},
	"unasked": {
		"nobody wanted the verdict; try again",
		"niemand wollte das Ergebnis; bitte noch einmal versuchen",
		"personne n'a voulu le résultat ; réessayez",
	},
	"interrupted": {
		"another program took the camera; try again",
		"ein anderes Programm hat die Kamera übernommen; bitte noch einmal versuchen",
		"un autre programme a pris la caméra ; réessayez",
	},
	"enrolled": {"enrolled", "Gesicht registriert", "visage enregistré"},
	"timed-out": {
		"out of time; try again",
		"die Zeit ist um; bitte noch einmal versuchen",
		"le temps est écoulé ; réessayez",
	},
	"camera-turned": {
		"the camera seems to be turned, and nothing was enrolled; an administrator can turn its pictures. The log tells " +
			"by how much: journalctl -u faceauth",
		"die Kamera scheint gedreht zu sein, und nichts wurde registriert; ein Administrator kann ihre Bilder drehen. " +
			"Um wie viel, steht im Protokoll: journalctl -u faceauth",
		"la caméra semble tournée, et rien n'a été enregistré ; un administrateur peut tourner ses images. L'angle " +
			"est dans le journal : journalctl -u faceauth",
	},
	"camera-like-screen": {
		"this camera's pictures look like a screen's: logins by face would fail, and nothing was enrolled; add more " +
			"light, or ask an administrator. The score is in the log: journalctl -u faceauth",
		"die Bilder dieser Kamera sehen aus wie die eines Bildschirms: Anmeldungen mit dem Gesicht würden scheitern, " +
			"und nichts wurde registriert; bitte für mehr Licht sorgen oder einen Administrator fragen. Der Wert " +
			"steht im Protokoll: journalctl -u faceauth",
		"les images de cette caméra ressemblent à celles d'un écran : la connexion par le visage échouerait, et rien " +
			"n'a été enregistré ; ajoutez de la lumière ou demandez à un administrateur. La valeur est dans le " +
			"journal : journalctl -u faceauth",
	},
	"already-another-user": {
		"this face is enrolled for another user; remove it there first",
		"dieses Gesicht gehört schon zu einem anderen Benutzer; bitte dort zuerst entfernen",
		"ce visage est déjà enregistré pour un autre utilisateur ; supprimez-le d'abord",
	},

	// Instructions for the person in front of the camera.
	"looking": {"looking", "die Kamera sucht ein Gesicht", "la caméra cherche un visage"},
	"two-faces": {
		"more than one face is in view; one person alone, please",
		"mehr als ein Gesicht ist zu sehen; bitte nur eine Person",
		"plus d'un visage est visible ; une seule personne, s'il vous plaît",
	},
	"look-straight": {"look straight into the camera", "gerade in die Kamera sehen", "regardez droit dans la caméra"},
	"turn-left": {
		"turn your head a little to your left",
		"den Kopf ein wenig nach links drehen",
		"tournez un peu la tête vers votre gauche",
	},
	"turn-right": {
		"turn your head a little to your right",
		"den Kopf ein wenig nach rechts drehen",
		"tournez un peu la tête vers votre droite",
	},
	"tilt": {
		"look straight again, and tilt your head a little up or down",
		"wieder gerade sehen und den Kopf ein wenig heben oder senken",
		"regardez de nouveau droit, et levez ou baissez un peu la tête",
	},
	"blink":     {"blink", "blinzeln", "clignez des yeux"},
	"too-small": {"come nearer", "näher kommen", "approchez-vous"},
	"too-dark": {
		"it is too dark; add more light",
		"es ist zu dunkel; bitte mehr Licht machen",
		"il fait trop sombre ; ajoutez de la lumière",
	},
	"too-bright": {
		"it is too bright; turn away from the light",
		"es ist zu hell; bitte vom Licht wegdrehen",
		"il y a trop de lumière ; détournez-vous de la lumière",
	},
	"low-contrast": {
		"there is too little contrast; clean the lens",
		"zu wenig Kontrast; bitte das Objektiv reinigen",
		"trop peu de contraste ; nettoyez l'objectif",
	},
	"blurred": {"hold still", "still halten", "ne bougez pas"},
	"tilted":  {"hold your head upright", "den Kopf aufrecht halten", "tenez la tête droite"},
	"covered": {
		"take off sunglasses or a mask",
		"bitte Sonnenbrille oder Maske abnehmen",
		"retirez vos lunettes de soleil ou votre masque",
	},
	"turned-away": {"turn back to the camera", "wieder zur Kamera drehen", "tournez-vous de nouveau vers la caméra"},
	"no-vector": {
		"your face is not all in view; move into the middle",
		"das Gesicht ist nicht ganz zu sehen; bitte in die Mitte rücken",
		"votre visage n'est pas entièrement visible ; placez-vous au milieu",
	},
	"unclear": {
		"your face is hard to recognise; look straight into the camera, in good light",
		"das Gesicht ist schwer zu erkennen; bitte bei gutem Licht gerade in die Kamera sehen",
		"votre visage est difficile à reconnaître ; regardez droit vers la caméra, sous une bonne lumière",
	},
	"other-person": {
		"this does not look like the person who began; look at the camera, or begin again",
		"das sieht nicht nach der Person aus, die begonnen hat; bitte in die Kamera sehen oder neu beginnen",
		"cela ne semble pas être la personne qui a commencé ; regardez la caméra, ou recommencez",
	},
	"turned-too-far": {
		"that is too far; turn back a little",
		"das ist zu weit; ein wenig zurückdrehen",
		"c'est trop loin ; revenez un peu",
	},
	"took-look-straight": {"good: straight", "gut: gerade", "bien : de face"},
	"took-turn-left":     {"good: your left", "gut: links", "bien : à gauche"},
	"took-turn-right":    {"good: your right", "gut: rechts", "bien : à droite"},
	"took-tilt":          {"good: tilted", "gut: gehoben oder gesenkt", "bien : tête levée ou baissée"},

	// The face scores like a picture of a face.
	"not-live": {"your face looks like a picture; look straight into the camera, and add more light",
		"das Gesicht sieht aus wie ein Bild; bitte gerade in die Kamera sehen und mehr Licht machen",
		"votre visage ressemble à une image ; regardez droit dans la caméra et ajoutez de la lumière"},

	// Errors, by name.
	"PermissionDenied": {
		"you may not do that here; an administrator may: run the command with sudo",
		"das dürfen Sie hier nicht; ein Administrator darf es: bitte den Befehl mit sudo ausführen",
		"vous n'en avez pas le droit ici ; il faut être administrateur : lancez la commande avec sudo",
	},
	"Elsewhere": {
		"the face counts only at the device; use your password",
		"das Gesicht gilt nur am Gerät; bitte das Passwort eingeben",
		"le visage ne compte que devant l'appareil ; utilisez votre mot de passe",
	},
	"AlreadyInUse": {
		"another login is using the camera; try again in a few seconds, or use your password",
		"eine andere Anmeldung benutzt die Kamera; bitte in ein paar Sekunden noch einmal versuchen, oder das " +
			"Passwort eingeben",
		"une autre connexion utilise la caméra ; réessayez dans quelques secondes, ou utilisez votre mot de passe",
	},
	"NoProfile": {
		"this user has no profile; make one: sudo faceauth login enroll --user NAME",
		"für diesen Benutzer ist kein Gesicht registriert; bitte ausführen: sudo faceauth login enroll --user NAME",
		"cet utilisateur n'a pas de profil ; créez-en un : sudo faceauth login enroll --user NOM",
	},
	"TooSoon": {
		"too soon after a failure; wait a moment, or use your password",
		"zu bald nach einem Fehlversuch; bitte kurz warten, oder das Passwort eingeben",
		"trop tôt après un échec ; attendez un instant, ou utilisez votre mot de passe",
	},
	"PasswordNeeded": {
		"log in with your password first; then your face counts again",
		"bitte zuerst mit dem Passwort anmelden; dann gilt das Gesicht wieder",
		"connectez-vous d'abord avec votre mot de passe ; ensuite votre visage comptera de nouveau",
	},
	"InvalidUser": {
		"no user of this system has that name; check the spelling",
		"kein Benutzer dieses Systems heißt so; bitte die Schreibweise prüfen",
		"aucun utilisateur de ce système ne porte ce nom ; vérifiez l'orthographe",
	},
	"TooManyRequests": {
		"too many requests; wait a few seconds",
		"zu viele Anfragen; bitte ein paar Sekunden warten",
		"trop de demandes ; attendez quelques secondes",
	},
	"LidClosed": {
		"the lid is closed, so the camera sees nobody; use your password",
		"der Deckel ist zu, darum sieht die Kamera niemanden; bitte das Passwort eingeben",
		"le capot est fermé, donc la caméra ne voit personne ; utilisez votre mot de passe",
	},
	"TooManyLooks": {
		"the profile has as many looks as it may; to replace them: faceauth login enroll",
		"das Profil enthält schon so viele Aussehen, wie es darf; ersetzen: faceauth login enroll",
		"le profil a déjà autant d'apparences que permis ; pour les remplacer : faceauth login enroll",
	},
	"Internal": {
		"something went wrong; use your password. The log tells the reason: journalctl -u faceauth",
		"etwas ging schief; bitte das Passwort eingeben. Einzelheiten stehen im Protokoll: journalctl -u faceauth",
		"quelque chose a échoué ; utilisez votre mot de passe. Les détails sont dans le journal : journalctl -u " +
			"faceauth",
	},
	"account-locked": {
		"this account is locked or has expired, so the face does not count",
		"dieses Konto ist gesperrt oder abgelaufen, darum gilt das Gesicht nicht",
		"ce compte est verrouillé ou a expiré, donc le visage ne compte pas",
	},
	"too-long": {
		"this is too long to be shown whole, so the face does not count; use your password",
		"das ist zu lang, um es ganz zu zeigen, darum gilt das Gesicht nicht; bitte das Passwort eingeben",
		"c'est trop long pour être montré en entier, donc le visage ne compte pas ; utilisez votre mot de passe",
	},
	"would-allow": {
		"your face would allow the following",
		"Ihr Gesicht würde das Folgende erlauben",
		"votre visage autoriserait ce qui suit",
	},
	"Wait": {
		"too soon after a failure; wait %d s, or use your password",
		"zu bald nach einem Fehlversuch; bitte %d s warten, oder das Passwort eingeben",
		"trop tôt après un échec ; attendez %d s, ou utilisez votre mot de passe",
	},
}
