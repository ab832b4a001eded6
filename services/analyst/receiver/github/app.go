package github

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Times of what an App signs and is given. GitHub takes a signature for ten minutes at most, and gives a token for an hour.
const (
	signatureAge = 9 * time.Minute
	clockSkew    = time.Minute     // by which the clock of this machine may be ahead of GitHub's
	tokenReserve = 5 * time.Minute // before its end a token is used no more
)

// App is a GitHub App with an installation. Its zero value is none.
type App struct {
	ID           string // of the App, or its client ID
	Installation int64  // where it is installed: at the owner of the repositories
	KeyFile      string // PEM file with a private key of the App, which is read again for each token
}

// key reads the private key.
func (a App) key() (*rsa.PrivateKey, error) {
	text, err := post.Secret(a.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s has no private key of a GitHub App (RSA, in PEM): %w", a.KeyFile, err)
	}
	return key, nil
}

// signature returns what the App says of itself, signed, as a JSON Web Token.
func (a App) signature(now time.Time) (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: a.ID, IssuedAt: jwt.NewNumericDate(now.Add(-clockSkew)), ExpiresAt: jwt.NewNumericDate(now.Add(signatureAge)),
	}).SignedString(key)
}

// installation has the token of an App's installation, until shortly before its end.
type installation struct {
	app   App
	now   func() time.Time
	token string
	until time.Time
}

// accessToken is the answer of GitHub to a request for a token.
type accessToken struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires_at"`
}

// authorization returns the header of a request of the installation. No error says that a notice was sent or refused.
func (i *installation) authorization(ctx context.Context, client *post.Client, api string) (string, error) {
	if i.token == "" || !i.now().Before(i.until.Add(-tokenReserve)) {
		if err := i.renew(ctx, client, api); err != nil {
			return "", err
		}
	}
	return "Bearer " + i.token, nil
}

// renew gets a new token.
func (i *installation) renew(ctx context.Context, client *post.Client, api string) error {
	signed, err := i.app.signature(i.now())
	if err != nil {
		return fmt.Errorf("sign as the App: %w", err)
	}
	answer, err := client.Send(ctx, post.Request{
		Method: http.MethodPost, URL: fmt.Sprintf("%s/app/installations/%d/access_tokens", api, i.app.Installation), Limit: maxAnswer,
		Headers: headers("Bearer " + signed),
	})
	if err != nil {
		return withoutToken(err)
	}
	var got accessToken
	if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Token == "" {
		return errors.New("GitHub's answer to the request for a token has none")
	}
	i.token, i.until = got.Token, got.Expires
	return nil
}

// withoutToken returns the error of a notice for which there is no token: nothing was sent, and an operator can repair what GitHub refuses.
func withoutToken(err error) error {
	away := &receiver.TemporaryError{Err: errors.New("get a token of the App's installation: " + err.Error())}
	if busy, ok := errors.AsType[*post.TemporaryError](err); ok {
		away.After = busy.After
	}
	return limited(away)
}

// refused forgets a token that GitHub does not take any more.
func (i *installation) refused(err error) {
	if away, ok := errors.AsType[*post.TemporaryError](err); ok && away.Status == http.StatusUnauthorized {
		i.token = ""
	}
}
