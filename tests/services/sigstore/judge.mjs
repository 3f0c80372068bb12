// sigstore-js on a bundle: node judge.mjs TRUST_CONFIG BUNDLE IDENTITY ISSUER [ARTIFACT]; exit code 1 when it refuses.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { Verifier, toTrustMaterial, toSignedEntity } = require("@sigstore/verify");
const { bundleFromJSON } = require("@sigstore/bundle");
const { TrustedRoot } = require("@sigstore/protobuf-specs");

const [config, bundle, subjectAlternativeName, issuer, artifact] = process.argv.slice(2);
const read = (path) => JSON.parse(fs.readFileSync(path));
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(read(config).trustedRoot)));
try {
  const entity = toSignedEntity(bundleFromJSON(read(bundle)), artifact && fs.readFileSync(artifact));
  const { identity } = verifier.verify(entity, { subjectAlternativeName, extensions: { issuer } });
  console.log(identity.subjectAlternativeName);
} catch (error) {
  console.log(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
