// Asks the questions of a file by Pinot's client for Node.js; prints a line of JSON for each step.
const { readFileSync } = require("node:fs");
const { ConnectionFactory } = require("pinot-client");

const [way, file] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(file, "utf8"));

function connect(token) {
  const headers = { Authorization: `Bearer ${token}` };
  const options = { brokerReqHeaders: headers, controllerReqHeaders: headers };
  return way === "fromController"
    ? ConnectionFactory.fromController(asked.url, options)
    : ConnectionFactory.fromHostList([asked.url], options);
}

async function step(name, connecting, sql) {
  try {
    const answer = await (await connecting).execute(asked.table, sql);
    console.log(JSON.stringify({ step: name, rows: answer.resultTable.rows }));
  } catch (error) {
    console.log(JSON.stringify({ step: name, error: String(error) }));
  }
}

async function main() {
  const known = connect(asked.token);
  await step("connect", known, "SELECT 1");
  for (const name of ["top", "series", "sum", "refused"]) await step(name, known, asked[name]);
  await step("exhausted", connect(asked.poor_token), asked.top);
  await step("again", known, asked.top);
  process.exit(0);
}

main();
