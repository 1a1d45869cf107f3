// A real OpenID provider, whose access tokens are JWTs, and where a console's people log in under any name:
// node openid_provider.mjs CERTIFICATE KEY JWKS PORT CONSOLE
import { readFileSync } from "node:fs";
import https from "node:https";
import { Provider } from "oidc-provider";

const [certificate, key, jwks, port, site] = process.argv.slice(2);
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
      {
        client_id: "console",
        client_secret: "a secret/with: signs",
        grant_types: ["authorization_code"],
        redirect_uris: [`${site}/login/callback`],
        post_logout_redirect_uris: [`${site}/sign-in`],
        response_types: ["code"],
        id_token_signed_response_alg: "ES256",
        scope: "openid ask",
      },
    ],
    extraTokenClaims: (context, token) => ({ org: "acme", gris_roles: token.accountId === "olga" ? ["admin"] : [] }),
    jwks: JSON.parse(readFileSync(jwks)),
    scopes: ["openid", "ask"],
    pkce: { required: () => true },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:gris",
        getResourceServerInfo: (context, resource) => ({
          scope: "ask",
          audience: resource === "urn:gris" ? "gris" : resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
