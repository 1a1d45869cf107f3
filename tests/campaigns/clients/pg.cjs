// Asks the questions of a file by pg, or by postgres.js; prints a line of JSON for each step.
const { readFileSync } = require("node:fs");

const [way, file] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(file, "utf8"));
const INT8 = 20, DATE = 1082;

// Both take days for instants of this machine's zone, and pg whole numbers for texts, unless they are told.
function byPg(who) {
  const { Client, types } = require("pg");
  types.setTypeParser(INT8, Number);
  types.setTypeParser(DATE, String);
  return async (sql, values) => {
    const client = new Client({ connectionString: asked[`${who}postgres_dsn`] });
    await client.connect();
    try {
      return (await client.query({ text: sql, values, rowMode: "array" })).rows;
    } finally {
      await client.end();
    }
  };
}

function byPostgresJs(who) {
  const postgres = require("postgres");
  const types = {
    bigint: { to: INT8, from: [INT8], serialize: String, parse: Number },
    day: { to: DATE, from: [DATE], serialize: String, parse: String },
  };
  return async (sql, values) => {
    const client = postgres(asked[`${who}postgres_dsn`], { max: 1, types, onnotice: () => {} });
    try {
      return await client.unsafe(sql, values ?? []).values();
    } finally {
      await client.end();
    }
  };
}

async function step(name, rows, sql, values) {
  const numbered = sql.replace("?", "$1").replace("?", "$2");
  try {
    console.log(JSON.stringify({ step: name, rows: await rows(numbered, values) }));
  } catch (error) {
    console.log(JSON.stringify({ step: name, error: String(error) }));
  }
}

async function main() {
  const connected = way === "pg" ? byPg : byPostgresJs;
  const known = connected("");
  await step("connect", known, "SELECT 1");
  await step("tables", known, asked.tables_in_sql);
  await step("columns", known, asked.columns_in_sql);
  for (const name of ["top", "series", "sum", "refused"]) await step(name, known, asked[name]);
  await step("exhausted", connected("poor_"), asked.top);
  await step("again", known, asked.top);
  await step("parameter", known, asked.prepared, [asked.value]);
  await step("list", known, asked.listed, [[asked.value]]);
  await step("days", known, asked.between, [new Date("2025-01-01"), new Date("2026-01-01")]);
  process.exit(0);
}

main();
