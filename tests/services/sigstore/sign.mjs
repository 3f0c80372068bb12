// sigstore-js signs, as the job that the environment says: node sign.mjs URL BUNDLE FILE [MEDIA_TYPE]
// With a media type the file is the payload of a DSSE envelope, without one an artifact.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { CIContextProvider, DSSEBundleBuilder, FulcioSigner, MessageSignatureBundleBuilder, RekorWitness } =
  require("@sigstore/sign");
const { bundleToJSON } = require("@sigstore/bundle");

const [url, bundle, file, type] = process.argv.slice(2);
const signer = new FulcioSigner({ fulcioBaseURL: url, identityProvider: new CIContextProvider("sigstore") });
const witnesses = [new RekorWitness({ rekorBaseURL: url, entryType: "dsse" })];
const Builder = type ? DSSEBundleBuilder : MessageSignatureBundleBuilder;
const signed = await new Builder({ signer, witnesses }).create({ data: fs.readFileSync(file), type });
const made = bundleToJSON(signed);
// Protobuf's JSON leaves out what is zero or empty, and the mock's log has one entry; sigstore-python wants to read it.
for (const { inclusionProof } of made.verificationMaterial.tlogEntries) {
  Object.assign(inclusionProof, { logIndex: "0", hashes: [], ...inclusionProof });
}
fs.writeFileSync(bundle, JSON.stringify(made));
