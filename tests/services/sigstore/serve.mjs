// A Sigstore on loopback: Fulcio, a certificate log, Rekor v1 and v2, a timestamp authority, and the token endpoint of
// GitHub Actions. The cryptography is @sigstore/mock's; what is here is HTTP, and the differences between what its
// handlers take and what real services do, each with a comment.
//
//   node serve.mjs TRUST_CONFIG       with REKOR=1|2 and REQUEST_TOKEN in the environment
//
// Writes a client trust config, prints its address, and serves until it is killed. PUT /claims sets the claims of the
// tokens that follow; PUT /faults {"PATH": [status, …]} answers the next requests for PATH with these; PUT /late
// SECONDS moves the clocks of the logs and of the timestamp authority; PUT /ages [SECONDS, …] has the next certificates
// be that old when they are issued, of the ten minutes that they last.

import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PATH}/`);
const mock = require("@sigstore/mock");
const jose = require("jose");
const pkijs = require("pkijs");

const TRUST_CONFIG = process.argv[2];
const REKOR = Number(process.env.REKOR);
const AUDIENCE = "sigstore";
const TIMESTAMP_POLICY = "1.3.6.1.4.1.57264.2";

const keys = () => crypto.generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const sha256 = (bytes, encoding) => crypto.createHash("sha256").update(bytes).digest(encoding);
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const fromBase64 = (text) => Buffer.from(text, "base64");
const json = (statusCode, value) => ({ statusCode, response: JSON.stringify(value), contentType: "application/json" });

const server = http.createServer(listener);
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}`;

const certificateLog = await mock.initializeCTLog(keys());
const authority = await mock.initializeCA(keys(), certificateLog);
const log = await mock.initializeTLog(address, keys());
const clock = await mock.initializeTSA(keys());
const fulcio = mock.fulcioHandler(authority, { subjectClaim: "subject" });
const rekor = mock.rekorHandler(log);
const rekorV2 = mock.rekorV2Handler(log);
const timestamps = mock.tsaHandler(clock);
const tokens = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });

let claims = {};
let faults = {};
let late = 0;
let ages = [];
const now = () => Date.now() + late * 1000;
log.getCurrentTime = now;
authority.getCurrentTime = () => new Date(Date.now() - (ages.shift() ?? 0) * 1000);

const routes = {
  [`GET /token`]: async ({ headers, url }) => {
    if (headers.authorization?.toLowerCase() !== `bearer ${process.env.REQUEST_TOKEN}`.toLowerCase()) {
      return json(401, { message: "Bad credentials" });
    }
    return json(200, { value: await idToken(url.searchParams.get("audience")) });
  },

  [`POST ${fulcio.path}`]: async ({ body, headers }) => {
    const request = JSON.parse(body);
    let verified;
    try {
      const token = headers.authorization?.replace(/^bearer /i, "") ?? request.credentials?.oidcIdentityToken ?? "";
      verified = (await jose.jwtVerify(token, tokens.publicKey, { audience: AUDIENCE })).payload;
    } catch (error) {
      return json(401, { code: 16, message: `invalid identity token: ${error.message}` });
    }
    // The handler believes the token in the body, and takes the subject from one claim. Fulcio reads the header as
    // well, and names a GitHub workflow by job_workflow_ref.
    verified.subject = verified.job_workflow_ref ? `https://github.com/${verified.job_workflow_ref}` : verified.sub;
    request.credentials = { oidcIdentityToken: new jose.UnsecuredJWT(verified).encode() };
    // A request arrives as base64 of PEM, and the handler wants PEM.
    const signingRequest = request.certificateSigningRequest;
    if (signingRequest) request.certificateSigningRequest = fromBase64(signingRequest).toString();
    return fulcio.fn(JSON.stringify(request));
  },

  [`POST ${rekor.path}`]: async ({ body }) => {
    const entry = JSON.parse(body);
    const proposed = entry.spec.proposedContent;
    const key = entry.spec.signature?.publicKey;
    if (key) key.content = asRekorHas(key.content);
    if (proposed) {
      // The handler logs a DSSE entry as it was proposed; Rekor logs the digests of the envelope and its payload.
      const envelope = JSON.parse(proposed.envelope);
      entry.spec = {
        envelopeHash: { algorithm: "sha256", value: sha256(proposed.envelope, "hex") },
        payloadHash: { algorithm: "sha256", value: sha256(fromBase64(envelope.payload), "hex") },
        signatures: envelope.signatures.map(({ sig }, i) => {
          return { signature: sig, verifier: asRekorHas(proposed.verifiers[i]) };
        }),
      };
    }
    return rekor.fn(JSON.stringify(entry));
  },

  [`POST ${rekorV2.path}`]: async ({ body }) => {
    const { hashedRekordRequestV002: request } = JSON.parse(body);
    if (!request) return json(400, { message: "only hashedrekord entries are taken" });
    // The handler logs the request; Rekor logs an entry made from it, and answers as protobuf's JSON.
    const data = { algorithm: "SHA2_256", digest: request.digest };
    const logged = await log.logV2({
      apiVersion: "0.0.2",
      kind: "hashedrekord",
      spec: { hashedRekordV002: { data, signature: request.signature } },
    });
    const leaf = Buffer.concat([Buffer.from([0]), logged.canonicalizedBody]);
    return json(201, {
      ...logged,
      logId: { keyId: base64(logged.logId.keyId) },
      logIndex: "0",
      integratedTime: "0",
      kindVersion: { kind: "hashedrekord", version: "0.0.2" },
      canonicalizedBody: base64(logged.canonicalizedBody),
      inclusionProof: { ...logged.inclusionProof, logIndex: "0", rootHash: base64(sha256(leaf)) },
    });
  },

  [`POST ${timestamps.path}`]: async ({ raw }) => {
    // The handler takes JSON; a timestamp authority takes the DER of RFC 3161, with a nonce of 64 bits. Whole seconds:
    // sigstore-js reads no fraction that DER has shortened.
    const genTime = new Date(Math.floor(now() / 1000) * 1000);
    const query = pkijs.TimeStampReq.fromBER(raw);
    const original = Object.getPrototypeOf(clock).tstInfo;
    clock.tstInfo = (request) => Object.assign(original.call(clock, request), { nonce: query.nonce, genTime });
    const response = await clock.timestamp({
      artifactHash: Buffer.from(query.messageImprint.hashedMessage.valueBlock.valueHexView),
      hashAlgorithmOID: query.messageImprint.hashAlgorithm.algorithmId,
      nonce: 1,
      policyOID: TIMESTAMP_POLICY,
      certReq: query.certReq ?? false,
    });
    return { statusCode: 201, response, contentType: "application/timestamp-reply" };
  },

  [`PUT /claims`]: async ({ body }) => json(200, (claims = JSON.parse(body))),
  [`PUT /faults`]: async ({ body }) => json(200, (faults = JSON.parse(body))),
  [`PUT /late`]: async ({ body }) => json(200, (late = JSON.parse(body))),
  [`PUT /ages`]: async ({ body }) => json(200, (ages = JSON.parse(body))),
};

// Rekor reads a certificate and writes it again, in lines of 64; the handler keeps what it was given.
function asRekorHas(certificate) {
  return base64(new crypto.X509Certificate(fromBase64(certificate)).toString());
}

function idToken(audience) {
  const { iss = "https://token.actions.githubusercontent.com", lifetime = "10m", ...rest } = claims;
  const token = new jose.SignJWT(rest).setProtectedHeader({ alg: "RS256" }).setIssuer(iss).setAudience(audience);
  return token.setIssuedAt().setNotBefore("0s").setExpirationTime(lifetime).sign(tokens.privateKey);
}

function listener(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk)).on("end", async () => {
    const url = new URL(request.url, address);
    const raw = Buffer.concat(chunks);
    const route = routes[`${request.method} ${url.pathname}`];
    let answer = json(404, { message: "Not Found" });
    const fault = faults[url.pathname]?.shift();
    try {
      if (fault) answer = json(fault, { message: "injected" });
      else if (route) answer = await route({ body: raw.toString(), raw, headers: request.headers, url });
    } catch (error) {
      answer = json(500, { message: String(error.stack) });
    }
    response.writeHead(answer.statusCode, { "Content-Type": answer.contentType ?? "text/plain" });
    response.end(answer.response);
  });
}

function trustConfig() {
  const validFor = { start: new Date(Date.now() - 60_000).toISOString() };
  const logOf = (key) => ({
    baseUrl: address,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: base64(key), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId: base64(sha256(key)) },
  });
  const authorityOf = (commonName, ...certificates) => ({
    subject: { organization: "sigstore.mock", commonName },
    uri: address,
    certChain: { certificates: certificates.map((certificate) => ({ rawBytes: base64(certificate) })) },
    validFor,
  });
  const service = (url, majorApiVersion = 1) => [{ url, majorApiVersion, validFor, operator: "sigstore.mock" }];
  return {
    mediaType: "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
    trustedRoot: {
      mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
      tlogs: [logOf(log.publicKey)],
      ctlogs: [logOf(certificateLog.publicKey)],
      certificateAuthorities: [authorityOf("sigstore", authority.rootCertificate)],
      timestampAuthorities: [authorityOf("tsa", clock.intCertificate, clock.rootCertificate)],
    },
    signingConfig: {
      mediaType: "application/vnd.dev.sigstore.signingconfig.v0.2+json",
      caUrls: service(address),
      oidcUrls: service(address),
      rekorTlogUrls: service(address, REKOR),
      // Rekor v2 gives no time of its own, so somebody else has to.
      tsaUrls: REKOR === 2 ? service(address + timestamps.path) : [],
      rekorTlogConfig: { selector: "ANY" },
      tsaConfig: { selector: "ANY" },
    },
  };
}

fs.writeFileSync(TRUST_CONFIG, JSON.stringify(trustConfig(), null, 1));
console.log(address);
