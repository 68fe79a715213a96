// The explorer: unpacks the problems, lists them in a table, and shows one on a page of its own.
// All text that comes from traces is put into the page as text nodes, never as HTML.

async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function loadLibrary() {
  const source = await (await unpacked("library")).text();
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { jQuery } = await import(url);
  URL.revokeObjectURL(url);
  return jQuery;
}

// --- words for numbers --------------------------------------------------------------------------

const grouped = new Intl.NumberFormat("en-US");
const integer = (value) => (value === null ? "–" : grouped.format(value));

function significant(value, digits = 3) {
  if (value === null) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) {
    return value.toExponential(digits - 1);
  }
  return grouped.format(Number(value.toPrecision(digits)));
}

function time(ms) {
  if (ms === null) return "–";
  if (ms >= 1000) return `${significant(ms / 1000)} s`;
  return ms >= 1 ? `${significant(ms)} ms` : `${significant(ms * 1000)} µs`;
}

function share(part) {
  if (part === null || part === undefined) return "–";
  return part >= 0.0001 ? `${significant(part * 100)} %` : "< 0.01 %";
}

function rate(amount, ms, unit) {
  return amount && ms ? `${significant(amount / ms / 1e6)} G${unit}/s` : "–";
}

// --- building the page --------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const reasonWords = {
  "We cannot run this op on backendbench yet": "BackendBench cannot run it",
  "BackendBench does not support correctness testing for random ops yet": "random",
  "BackendBench does not support correctness testing for tensor creation and manipulation ops yet":
    "creates or moves",
  "Synthetic ops are not supported in the official benchmark yet": "synthetic",
};

function standing(problem) {
  if (!problem.included) {
    const reasons = problem.reasons.map((reason) => reasonWords[reason] ?? reason);
    return ["out", reasons.join(", ")];
  }
  if (problem.runtime_ms === null) return ["unmeasured", `in; ${problem.statusWord}`];
  return problem.overhead ? ["overhead", "in; launch overhead"] : ["in", "in"];
}

function badge(problem) {
  const [kind, text] = standing(problem);
  return element("span", { class: `badge ${kind}` }, text);
}

// --- the problems -------------------------------------------------------------------------------

function problemsOf(data) {
  const { columns } = data;
  const names = Object.keys(columns);
  return columns.uuid.map((uuid, index) => {
    const problem = { index };
    for (const name of names) problem[name] = columns[name][index];
    problem.op = data.operators[problem.operator];
    problem.statusWord = data.statuses[problem.status];
    problem.reasons = problem.why_excluded.map((number) => data.why_excluded[number]);
    problem.models = problem.in_models.map((number) => data.in_models[number]);
    problem.suites = new Set(problem.models.map((model) => model.split("/")[0]));
    problem.text = `${problem.op} ${problem.args}`.toLowerCase();
    return problem;
  });
}

// Each filter: its select's id, and whether a problem passes a choice other than "".
const filters = {
  included: (problem, choice) => problem.included === (choice === "in"),
  reason: (problem, choice) => problem.reasons.includes(choice),
  suite: (problem, choice) => problem.suites.has(choice),
  model: (problem, choice) => problem.models.includes(choice),
  overhead: (problem, choice) =>
    choice === (problem.runtime_ms === null ? "unmeasured" : problem.overhead ? "yes" : "no"),
  dtype: (problem, choice, data) =>
    problem.dtypes.some((number) => data.dtypes[number] === choice),
};

function choicesOf(data, problems) {
  const suites = [...new Set(data.in_models.map((model) => model.split("/")[0]))];
  const plain = (words) => words.map((word) => [word, word]);
  const words = {
    included: [["in", "in the benchmark"], ["out", "left out"]],
    reason: data.why_excluded.map((reason) => [reason, reasonWords[reason] ?? reason]),
    suite: plain(suites),
    model: plain(data.in_models),
    overhead: [["no", "computes"], ["yes", "launch overhead"], ["unmeasured", "not measured"]],
    dtype: plain(data.dtypes),
  };
  const counted = (name, [value, label]) => {
    const count = problems.filter((problem) => filters[name](problem, value, data)).length;
    return element("option", { value }, `${label} (${integer(count)})`);
  };
  for (const [name, list] of Object.entries(words)) {
    const options = list.map((choice) => counted(name, choice));
    document.getElementById(name).replaceChildren(element("option", { value: "" }, "any"), ...options);
  }
}

function select(data, problems, shown) {
  const terms = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = Object.keys(filters)
    .map((name) => [filters[name], document.getElementById(name).value])
    .filter(([, choice]) => choice !== "");
  let calls = 0, part = 0, count = 0;
  for (const problem of problems) {
    const passes =
      terms.every((term) => problem.text.includes(term)) &&
      chosen.every(([filter, choice]) => filter(problem, choice, data));
    shown[problem.index] = passes ? 1 : 0;
    if (passes) {
      count += 1;
      calls += problem.count;
      part += problem.share ?? 0;
    }
  }
  const measured = problems.some((problem) => problem.share !== null);
  document.getElementById("found").textContent =
    `${integer(count)} of ${integer(problems.length)} problems · ${integer(calls)} calls` +
    (measured ? ` · ${share(part)} of the measured operator time` : "");
}

function tableOf(jQuery, problems, shown) {
  const shows = (value, words) => ({
    data: null,
    searchable: false,
    type: "num",
    className: "number",
    orderSequence: ["desc", "asc"],
    // What is not known sorts below everything.
    render: (problem, kind) => (kind === "display" ? words(value(problem)) : value(problem) ?? -1),
  });
  const node = (title, value, made) => ({
    title, data: null, searchable: false,
    render: (problem, kind) => (kind === "display" ? made(problem) : value(problem)),
  });
  const table = jQuery("#problems").DataTable({
    data: problems,
    columns: [
      node("Operator", (problem) => problem.op, (problem) =>
        element("a", { href: `#${problem.uuid}` }, problem.op)),
      node("Arguments", (problem) => problem.args, (problem) =>
        element("code", { title: problem.args }, problem.args)),
      { title: "Calls", ...shows((problem) => problem.count, integer) },
      { title: "Models", ...shows((problem) => problem.models.length, integer) },
      { title: "Runtime", ...shows((problem) => problem.runtime_ms, time) },
      { title: "× launch", ...shows((problem) => problem.relative, significant) },
      { title: "Of the time", ...shows((problem) => problem.share, share) },
      node("Benchmark", (problem) => standing(problem)[1], badge),
    ],
    order: [[2, "desc"]],
    pageLength: 50,
    lengthChange: false,
    autoWidth: false,
    layout: { topStart: null, topEnd: null, bottomStart: "info", bottomEnd: "paging" },
    language: { info: "_START_ to _END_ of _TOTAL_", infoFiltered: "", emptyTable: "No problem.", zeroRecords: "No problem." },
  });
  table.search.fixed("filters", (text, row, index) => shown[index] === 1);
  return table;
}

// --- one problem's page -------------------------------------------------------------------------

function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== "" && value !== "–");
  return element("dl", {}, ...known.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]));
}

function rows(heads, lines, numbersFrom) {
  const cell = (name) => (value, column) =>
    element(name, { class: column >= numbersFrom ? "number" : null }, value);
  return element("table", { class: "plain" },
    element("thead", {}, element("tr", {}, ...heads.map(cell("th")))),
    element("tbody", {}, ...lines.map((line) => element("tr", {}, ...line.map(cell("td"))))));
}

function measurement(problem, about) {
  if (problem.runtime_ms === null) {
    return facts([
      ["Status", problem.statusWord],
      ["Why", problem.reason],
      ["In torch's words", problem.error],
      ["Device", about.device],
    ]);
  }
  const interval = (low, high, words) =>
    low === null || high === null ? "none: too few samples" : `${words(low)} to ${words(high)}`;
  const inMs = (ratio) => time(ratio * problem.launch_ms);
  return facts([
    ["Runtime", time(problem.runtime_ms)],
    ["Its interval (94 %)", interval(problem.ratio_low, problem.ratio_high, inMs)],
    ["Launches", `${significant(problem.relative)} × an empty kernel's ${time(problem.launch_ms)}`],
    ["Their interval (94 %)", interval(problem.ratio_low, problem.ratio_high, significant)],
    ["Launch overhead", problem.overhead
      ? `yes: below ${about.threshold} launches` : `no: ${about.threshold} launches or more`],
    ["Median, interquartile range", `${time(problem.median_ms)}, ${time(problem.iqr_ms)}`],
    ["Samples, visits", `${integer(problem.samples)}, ${integer(problem.visits)}`],
    ["Spread between visits", share(problem.between_visit_cv)],
    ["Precise to 2 %", problem.precision_met ? "yes" : "no"],
    ["Bytes to be moved", `${integer(problem.bytes_moved)}, ` +
      rate(problem.bytes_moved, problem.runtime_ms, "B")],
    ["FLOPs", problem.flops === null ? null
      : `${integer(problem.flops)}, ${rate(problem.flops, problem.runtime_ms, "FLOP")}`],
    ["Device", about.device],
    ["torch", about.torch],
  ]);
}

function worth(problem) {
  if (problem.share === null) return null;
  return element("p", {},
    `${share(problem.share)} of the measured operator time of the set, ` +
    `place ${integer(problem.rank)}: ${integer(problem.count)} calls × ${time(problem.runtime_ms)}.`);
}

function warnings(problem) {
  const said = [
    [problem.degenerate, "A tensor of several elements stores one value only."],
    [problem.output_constant, "The output holds one value throughout."],
    [problem.output_equals_input, "The output equals an input."],
  ].filter(([holds]) => holds).map(([, text]) => element("li", {}, text));
  return said.length
    ? element("div", { class: "warning" }, element("p", {}, "A wrong kernel could pass unseen:"),
      element("ul", {}, ...said))
    : null;
}

function codeBlock(problem) {
  if (problem.code === null) {
    return element("p", {}, "No few words build valid inputs for it, or this torch lacks it.");
  }
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(problem.code);
    copy.textContent = "Copied";
  });
  return element("div", { class: "code" }, copy, element("pre", { id: "code" }, problem.code));
}

function modelLines(problem) {
  return problem.models
    .map((model, place) => [model, problem.calls[place] ?? null, problem.shares[place] ?? null])
    .sort((one, other) => (other[2] ?? 0) - (one[2] ?? 0))
    .map(([model, calls, part]) => [model, integer(calls), share(part)]);
}

function show(problem, about) {
  const page = document.getElementById("problem");
  page.replaceChildren(
    element("p", {}, element("a", { href: "#", id: "back" }, "← all problems")),
    element("h2", {}, problem.op),
    problem.included ? element("p", {}, "Benchmark: ", badge(problem)) : "",
    ...problem.reasons.map((reason) => element("p", {}, `Left out: ${reason}.`)),
    worth(problem) ?? "", warnings(problem) ?? "",
    element("h3", {}, "Arguments"),
    problem.arguments === null ? "" : rows(["argument", "dtype", "shape or value", "storage"],
      problem.arguments, 9),
    element("pre", { id: "args" }, problem.args),
    element("h3", {}, "Run it"), codeBlock(problem),
    element("h3", {}, "Measurement"), measurement(problem, about),
    element("h3", {}, `Models (${integer(problem.models.length)})`),
    problem.models.length
      ? rows(["model", "calls", "share of the model's time"], modelLines(problem), 1)
      : element("p", {}, "None: the problem is synthetic, or its file names no model."),
    element("p", { class: "soft" }, `uuid ${problem.uuid}`),
  );
}

// --- start --------------------------------------------------------------------------------------

function aboutLine(about, problems) {
  const included = problems.filter((problem) => problem.included).length;
  const measured = problems.filter((problem) => problem.runtime_ms !== null).length;
  const where = measured
    ? `${integer(measured)} measured on ${about.device}, torch ${about.torch}`
    : "none measured (device: off)";
  return `${integer(problems.length)} problems, ${integer(included)} in the benchmark, ${where}.`;
}

function route(byUuid, about) {
  const problem = byUuid.get(location.hash.slice(1));
  document.getElementById("list").hidden = problem !== undefined;
  document.getElementById("problem").hidden = problem === undefined;
  if (problem !== undefined) {
    show(problem, about);
    window.scrollTo(0, 0);
  }
}

async function start() {
  const [jQuery, data] = await Promise.all([loadLibrary(), unpacked("data").then((r) => r.json())]);
  const problems = problemsOf(data);
  const byUuid = new Map(problems.map((problem) => [problem.uuid, problem]));
  const shown = new Uint8Array(problems.length);
  document.getElementById("about").textContent = aboutLine(data.about, problems);
  choicesOf(data, problems);
  select(data, problems, shown);
  const table = tableOf(jQuery, problems, shown);
  const filter = () => {
    select(data, problems, shown);
    table.draw();
  };
  const form = document.getElementById("filters");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  window.addEventListener("hashchange", () => route(byUuid, data.about));
  route(byUuid, data.about);
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  document.getElementById("about").textContent = `This page needs a newer browser: ${error}`;
  throw error;
});
