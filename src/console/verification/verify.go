package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Header is what an http.Header can do.
type Header interface{ Get(name string) string }

var seconds = regexp.MustCompile(`^[0-9]{1,12}$`)

// IsGenuine tells whether a delivery is signed with the secret ("sec_…"), and at most so old:
// 5*time.Minute is usual. The header is that of the request; the body is as it came.
// Without a secret, nothing is genuine.
func IsGenuine(secret string, header Header, body []byte, tolerance time.Duration) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	if secret == "" || !seconds.MatchString(timestamp) {
		return false
	}
	sent, _ := strconv.ParseInt(timestamp, 10, 64)
	age := time.Since(time.Unix(sent, 0))
	if age > tolerance || age < -tolerance {
		return false
	}

	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// After a rotation there are several, one for each secret that is still valid.
	for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(signature), []byte(expected)) {
			return true
		}
	}
	return false
}
