// A real OpenID provider, whose access tokens are JWTs: node openid_provider.mjs CERTIFICATE KEY JWKS PORT
import { readFileSync } from "node:fs";
import https from "node:https";
import { Provider } from "oidc-provider";

const [certificate, key, jwks, port] = process.argv.slice(2);
const server = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
server.listen(Number(port), "127.0.0.1", () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "ana",
        client_secret: "secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: "ES256",
        scope: "ask",
      },
    ],
    jwks: JSON.parse(readFileSync(jwks)),
    scopes: ["ask"],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:gris",
        getResourceServerInfo: () => ({
          scope: "ask",
          audience: "gris",
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
