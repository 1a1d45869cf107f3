// Asks a gateway one private question, and what is left of the budget afterwards.
//
//   node ask.js --gateway localhost:50054 --ca ca.pem --certificate ana.pem --key ana.key \
//       --table cofacts_feedback --by article_id --k 5
//
// The gateway knows the caller by the certificate or the token; nothing else says who pays.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import protobuf from "protobufjs";

const ASK_SECONDS = 120;
const { values: options } = parseArgs({
  options: {
    gateway: { type: "string", default: "localhost:50054" },
    ca: { type: "string" }, // who signs the gateway's certificate (PEM)
    certificate: { type: "string" }, // the certificate to show (PEM)
    key: { type: "string" }, // its private key (PEM)
    token: { type: "string" }, // a file with a token
    table: { type: "string", default: "cofacts_feedback" },
    by: { type: "string", default: "article_id" },
    k: { type: "string", default: "10" },
    sql: { type: "string" }, // the question in SQL instead of table, by and k
    protos: { type: "string", default: join(dirname(fileURLToPath(import.meta.url)), "..", "..", "protos") },
  },
});

// 64-bit integers as strings: JavaScript's own numbers are exact up to 2^53 only.
const definition = loadSync("gris/app/v1/app.proto", {
  includeDirs: [options.protos],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
});
const { PrivateQueryService } = grpc.loadPackageDefinition(definition).gris.app.v1;

// What a refusal carries, as far as it is needed here.
const refusals = protobuf.parse(
  `
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
  `,
  { keepCase: true },
).root;

function file(path) {
  return path === undefined ? null : readFileSync(path);
}

function metadata() {
  const sent = new grpc.Metadata();
  if (options.token !== undefined) {
    sent.set("authorization", `Bearer ${readFileSync(options.token, "utf8").trim()}`);
  }
  return sent;
}

function question() {
  if (options.sql !== undefined) {
    return { sql: options.sql };
  }
  return {
    structured: {
      table: options.table,
      dimensions: options.by === "" ? [] : options.by.split(","),
      measure: "MEASURE_DISTINCT_MEMBERS",
      k: options.k,
    },
  };
}

// A result is complete only with its end: chunks of a stream that breaks off are none.
async function ask(client) {
  const deadline = new Date(Date.now() + 1000 * ASK_SECONDS);
  const chunks = [];
  let end = null;
  for await (const response of client.ask({ question: question() }, metadata(), { deadline })) {
    if (response.part === "end") {
      end = response.end;
    } else {
      chunks.push(response.chunk);
    }
  }
  if (end === null) {
    throw new Error("the gateway stopped before the end of the result");
  }
  return { chunks, end };
}

function shown(column, row) {
  const values = column[column.values];
  if (column.values === "dates") {
    return new Date(values.days[row] * 86_400_000).toISOString().slice(0, 10);
  }
  return String(values.values[row]);
}

// How many elements a chunk has; one without columns has one total.
function rows({ columns: [first], quantiles, ...chunk }) {
  if (first === undefined) {
    return quantiles.length > 0 ? quantiles[0].values.length : counts(chunk).length;
  }
  const { values, days } = first[first.values];
  return (values ?? days).length;
}

// Counts of weighted members, and counts relative to their total, are multiples of 1 / noisy_denominator.
function counts({ noisy_counts: whole, noisy_numerators: numerators, noisy_denominator: denominator }) {
  return numerators.length > 0 ? numerators.map((each) => Number(each) / Number(denominator)) : whole;
}

// What the ends of noise say of the count in the table: where bounds can cut what members have, it may be larger.
function bounds(coverage, lower, upper) {
  return coverage === "at_least" ? `at least ${lower}` : `${lower} to ${upper}`;
}

function print({ chunks, end }) {
  for (const chunk of chunks) {
    const { columns, noise_lower: lower, noise_upper: upper } = chunk;
    const noisy = counts(chunk);
    for (let row = 0; row < rows(chunk); row += 1) {
      const element = columns.map((column) => shown(column, row)).join(", ");
      // A question that omits counts is answered by the elements alone, and one for quantiles has cells.
      const count = noisy.length > 0 ? [noisy[row], bounds(end.shown.parameters.coverage, lower[row], upper[row])] : [];
      const cells = chunk.quantiles.map((each) => `${each.values[row]} (${each.lower[row]} to ${each.upper[row]})`);
      console.log([element, ...count, ...cells].join("\t"));
    }
  }
  const { statements, cost } = end.shown;
  for (const { code, text } of statements) {
    console.log(`${code}: ${text}`);
  }
  console.log(`cost ${cost.information} information, ${cost.calls} calls`);
  for (const { path, remaining, limit } of end.remaining) {
    const [left, most] = [remaining, limit].map((cost) => [cost.information, cost.calls]);
    console.log(`${path.join("/")}: ${left[0]} of ${most[0]} information, ${left[1]} of ${most[1]} calls left`);
  }
}

// The reason for machines, if the gateway gives one.
function reason(error) {
  const [packed] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (packed === undefined) {
    return "";
  }
  for (const detail of refusals.lookupType("Status").decode(packed).details) {
    if (detail.type_url.endsWith("/google.rpc.ErrorInfo")) {
      const info = refusals.lookupType("ErrorInfo").decode(detail.value);
      return ` (${info.domain}/${info.reason})`;
    }
  }
  return "";
}

const credentials = grpc.credentials.createSsl(file(options.ca), file(options.key), file(options.certificate));
const client = new PrivateQueryService(options.gateway, credentials);
try {
  print(await ask(client));
} catch (error) {
  console.error(`${error.details ?? error.message}${reason(error)}`);
  process.exitCode = 1;
} finally {
  client.close();
}
