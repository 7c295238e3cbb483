// The page of `ringmaster ui`. It reads /api/jobs every few seconds, and of the job that is shown
// /api/job once and then the events of /api/stream.
"use strict";

const PHASES = ["detect", "decide", "connect", "redo", "resume"];
const MOST_SAMPLES = 900;
const HEAT_ROW = { least: 6, most: 22, height: 280 };
const GAP = undefined;  // in a coloured row: nothing was heard of the rank
// What the coloured rows may show: of a rank in a sample, with the most that the scale goes to where that is fixed.
const HEAT = {
  own: {
    of: (sample, rank) => product(sample.paces[rank], sample.computes[rank]),
    says: "A step less what the rank stood still in collectives: the rank that the others wait for has the darkest row.",
  },
  share: {
    of: (sample, rank) => sample.computes[rank],
    most: 1,
    says: "All but the time in which the rank stood still in collectives: the rank that the others wait for has the darkest row.",
  },
  step: {
    of: (sample, rank) => sample.paces[rank],
    says: "From the end of a step to the end of the next. Ranks wait for each other, so that all rows are alike where each step has a collective.",
  },
};

const $ = (id) => document.getElementById(id);
const percent = (share) => (share === null || share === undefined ? "-" : Math.round(share * 100) + " %");
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// `turn` counts the jobs that were begun with: what was asked for in an earlier turn comes too late.
const page = { key: "", turn: 0, stream: null, past: 0, samples: [], job: null, charts: [], value: "" };
// What is told of a job that could not be looked at yet is less: the rest is as of a job without pods.
const UNSEEN = { view: "", pods: [], ranks: [], slots: 1, straggler: null, changes: [] };

// Nothing is drawn of a job before its first sample.
const isSeen = () => page.job !== null && page.samples.length > 0;

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  return seconds < 1 ? Number((seconds * 1000).toPrecision(3)) + " ms" : seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
}

function number(value) {
  if (value === null || value === undefined || !isFinite(value)) return "-";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

const product = (a, b) => (known(a) && known(b) ? a * b : null);
const known = (value) => value !== null && value !== undefined;

function waited(seconds) {
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (minutes < 1) return Math.floor(seconds) + " s";
  if (hours < 1) return minutes + " min";
  return hours < 48 ? `${hours} h ${minutes % 60} min` : Math.floor(hours / 24) + " days";
}

const time = (unixMs) => new Date(unixMs).toLocaleTimeString([], { hour12: false });

// A table row of plain cells; what is an element stays one.
function row(cells, name) {
  const tr = document.createElement("tr");
  if (name) tr.className = name;
  for (const cell of cells) {
    const td = document.createElement("td");
    if (cell instanceof Node) td.append(cell);
    else td.textContent = cell;
    tr.append(td);
  }
  return tr;
}

// ---- The job that is shown

function show(key) {
  if (page.stream) page.stream.close();
  const turn = page.turn + 1;
  Object.assign(page, { key, turn, stream: null, past: 0, samples: [], job: null });
  location.hash = key;
  clear();
  fetch("/api/job?job=" + encodeURIComponent(key))
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .then((seen) => {
      if (page.turn !== turn) return;
      page.samples = seen.samples;
      page.past = seen.past;
      page.job = { ...UNSEEN, ...seen.job };
      drawSeen();  // the rest comes with the first look, which the stream brings
      follow(key);
    })
    .catch((error) => {
      if (page.turn !== turn) return;
      $("connection").textContent = "not connected: " + error.message;
      page.key = "";  // the next list of jobs tries again
    });
}

// Nothing of another job may stand under the name of the one that was chosen.
function clear() {
  $("job").hidden = true;
  $("log").hidden = true;
  $("state").textContent = "";
  $("since").textContent = "-";
  $("ranks").tBodies[0].replaceChildren();  // of which a button may have the focus
  document.dispatchEvent(new Event("another-job"));
}

function follow(key) {
  const stream = new EventSource("/api/stream?job=" + encodeURIComponent(key));
  page.stream = stream;
  stream.onmessage = (event) => {
    const seen = JSON.parse(event.data);
    if (page.stream !== stream) return;
    sayWhyNot(seen.error);
    if (!seen.job) return;  // there is none
    if (seen.job.uid !== page.job.uid) {  // it was deleted, and made again under its name
      show(key);
      return;
    }
    page.job = { ...page.job, ...seen.job };
    if (seen.sample) addSample(seen.sample);  // else it could not be looked at
    drawSeen();
  };
  stream.onerror = () => {
    if (page.stream !== stream) return;
    $("connection").textContent = "not connected: what serves this page has ended, is away, or serves too many others";
    // The browser tries again by itself, but not where it was refused: then nothing follows this job any more.
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { if (page.stream === stream) follow(key); }, 3000);
  };
}

// Of the same job, after the page was not seen: what stands on it stays.
function goOn() {
  const { key, turn } = page;
  fetch("/api/job?job=" + encodeURIComponent(key))
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .then((seen) => {
      if (page.turn !== turn || page.stream) return;
      if (!page.job || seen.job.uid !== page.job.uid) {
        show(key);
        return;
      }
      page.samples = seen.samples;
      page.past = seen.past;
      page.job = { ...page.job, ...seen.job };
      drawSeen();
      follow(key);
    })
    .catch(() => {
      if (page.turn === turn && !page.stream) follow(key);  // which says what is wrong
    });
}

// A page that nobody sees takes none of the few streams that are served at a time.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") {
    if (page.stream) page.stream.close();
    page.stream = null;
  } else if (page.key && !page.stream) {
    goOn();
  }
});

function addSample(sample) {
  const last = page.samples[page.samples.length - 1];
  if (!last || sample.t > last.t) page.samples.push(sample);
  if (page.samples.length - page.past > MOST_SAMPLES) page.samples.splice(page.past, 1);
}

function sayWhyNot(error) {
  $("connection").textContent = error ? "not up to date: " + error : "";
}

function drawSeen() {
  if (isSeen()) draw();
  else drawState();
}

function draw() {
  $("none").hidden = true;
  $("job").hidden = false;
  drawNow();
  drawCharts();
  drawHeat();
  drawChanges();
  drawRanks();
}

function drawState() {
  const { state } = page.job;
  $("state").textContent = state;
  $("state").className = "state " + ({ Running: "good", Succeeded: "good", Failed: "bad" }[state] || "warn");
}

// The newest step that is known: a look that nobody has answered tells of none.
function lastStep() {
  let at = page.samples.length - 1;
  while (at > 0 && !known(page.samples[at].step)) --at;
  return page.samples[at].step;
}

function drawNow() {
  const { job } = page;
  const last = page.samples[page.samples.length - 1];
  drawState();
  $("troubles").replaceChildren(...job.troubles.map((trouble) => {
    const p = document.createElement("p");
    p.textContent = `${trouble.message} (${trouble.reason})`;
    return p;
  }));
  $("since").textContent = new Date(page.samples[0].t).toLocaleString();
  $("workers").textContent = number(last.workers);
  $("view").textContent = job.view || "-";
  $("step").textContent = number(lastStep());
  $("pace").textContent = duration(last.stepSeconds);
  $("rate").textContent = last.samplesPerSecond ? number(last.samplesPerSecond) : "-";
  $("lost").textContent = number(job.stepsLost);
  $("again").textContent = number(job.restartsFromCheckpoint);
  const late = job.straggler;
  $("straggler").hidden = !late;
  if (late) {
    $("straggler").textContent =
      `The others wait for rank ${late.rank} (${late.worker}): it waits ${percent(late.waits)} of its time, each of them ${percent(late.othersWait)} or more.`;
  }
}

// ---- Charts over time

// Lines where the view has changed.
function marks(u) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = color("--bad");
  ctx.setLineDash([4, 4]);
  for (const change of page.job.changes) {
    const x = u.valToPos(change.t / 1000, "x", true);
    if (!change.t || x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function newChart(id, label, stepped) {
  const place = $(id);
  place.replaceChildren();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const chart = new uPlot({
    width: place.clientWidth || 320,
    height: 180,
    legend: { show: false },
    cursor: { y: false },
    scales: { y: { range: (u, least, most) => (stepped ? [0, Math.max(1, most) * 1.15] : uPlot.rangeNum(least, most, 0.15, true)) } },
    axes: [{ ...axis }, { ...axis, size: 55 }],
    series: [{}, { label, stroke: color("--accent"), width: 2, spanGaps: !stepped,
                   paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: false } }],
    hooks: { draw: [marks] },
  }, [[], []], place);
  return { id, chart };
}

function makeCharts() {
  for (const { chart } of page.charts) chart.destroy();
  page.charts = [newChart("chart-workers", "workers", true), newChart("chart-pace", "ms", false), newChart("chart-value", "value", false)];
}

function drawCharts() {
  pickValue();
  if (page.charts.length === 0) makeCharts();
  const x = page.samples.map((sample) => sample.t / 1000);
  const of = {
    "chart-workers": (sample) => sample.workers,
    "chart-pace": (sample) => (sample.stepSeconds === null ? null : sample.stepSeconds * 1000),
    "chart-value": (sample) => (page.value in sample.values ? sample.values[page.value] : null),
  };
  for (const { id, chart } of page.charts) {
    const width = $(id).clientWidth;
    if (width && width !== chart.width) chart.setSize({ width, height: 180 });
    chart.setData([x, page.samples.map(of[id])]);
  }
}

// Which of the values that the script has reported is drawn: a loss, if there is one. The newest sample
// may have none of them, because nobody has answered, or because the job has ended.
function pickValue() {
  const names = [...new Set(page.samples.flatMap((sample) => Object.keys(sample.values)))].sort();
  $("values").hidden = names.length === 0;
  if (names.length === 0) return;  // what somebody has chosen stays chosen
  const options = $("value");
  if ([...options.options].map((option) => option.value).join() === names.join()) return;
  options.replaceChildren(...names.map((name) => new Option(name, name)));
  page.value = names.includes(page.value) ? page.value : names.find((name) => /loss/i.test(name)) || names[0] || "";
  options.value = page.value;
}

// A row for each rank, a column for each look: GAP where nothing was heard of a rank that the view has,
// null where it has no value. Where no step has ended since the look before, the one before counts.
function heatCells(looks, ranks, of) {
  const last = new Array(ranks).fill(null);
  return looks.map((sample) => {
    const untold = new Set(sample.untold);
    for (let rank = 0; rank < ranks; ++rank) {
      if (untold.has(rank)) last[rank] = GAP;
      else if (rank >= sample.computes.length) last[rank] = null;
      else last[rank] = of(sample, rank) ?? (last[rank] === GAP ? null : last[rank]);
    }
    return last.slice();
  });
}

// One look that took very long leaves the others their colours.
function heatMost(cells) {
  const values = cells.flat().filter(known).sort((a, b) => a - b);
  return values.length ? values[Math.floor(0.98 * (values.length - 1))] : 0;
}

function heatCanvas(ranks, tall) {
  const canvas = $("heat");
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 600;
  canvas.style.height = ranks * tall + "px";
  canvas.width = width * scale;
  canvas.height = ranks * tall * scale;
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  return { ctx, width, scale };
}

function drawHeat() {
  const shows = HEAT[$("heat-shows").value];
  const looks = page.samples.filter((sample) => sample.computes.length);  // the past has no ranks
  const ranks = Math.max(1, ...looks.map((sample) => sample.computes.length));
  const tall = Math.max(HEAT_ROW.least, Math.min(HEAT_ROW.most, Math.floor(HEAT_ROW.height / ranks)));
  const { ctx, width, scale } = heatCanvas(ranks, tall);
  const margin = 34;
  const wide = (width - margin) / Math.max(looks.length, 60);
  const cells = heatCells(looks, ranks, shows.of);
  const most = shows.most || heatMost(cells);
  ctx.fillStyle = color("--accent");
  const edge = (x) => Math.round((margin + x * wide) * scale) / scale;  // on a pixel: what is between two would be painted twice
  cells.forEach((column, x) => column.forEach((value, rank) => {
    if (!known(value)) return;
    ctx.globalAlpha = 0.04 + 0.96 * (most > 0 ? Math.min(1, value / most) : 0);
    ctx.fillRect(edge(x), rank * tall, edge(x + 1) - edge(x), tall - 1);
  }));
  ctx.globalAlpha = 1;
  ctx.fillStyle = color("--quiet");
  cells.forEach((column, x) => column.forEach((value, rank) => {
    if (value === GAP) ctx.fillRect(edge(x), rank * tall + Math.floor((tall - 1) / 2), edge(x + 1) - edge(x), 1);
  }));
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  const each = Math.ceil(12 / tall);
  for (let rank = 0; rank < ranks; rank += each) ctx.fillText(String(rank), 6, rank * tall + tall / 2);
  $("heat-scale").textContent = shows.most ? "0 % to 100 %" : `0 to ${duration(most)}`;
  const hidden = page.job.ranks.length - ranks;
  const gaps = cells.some((column) => column.includes(GAP)) ? " A thin line: the rank's sidecar gave no answer." : "";
  $("heat-says").textContent = (hidden > 0 && looks.length ? `The first ${ranks} of ${page.job.ranks.length} ranks. ` : "") + shows.says + gaps;
}

// ---- Tables

function why(change) {
  const who = [];
  if (change.left.length) who.push(change.left.join(", ") + (change.planned ? " left by plan" : " lost"));
  if (change.joined.length && change.view) who.push(change.joined.join(", ") + " joined");
  return change.reason + (who.length ? ": " + who.join("; ") : "");
}

function phases(seconds) {
  const bar = document.createElement("div");
  bar.className = "phases";
  const total = PHASES.reduce((sum, phase) => sum + (seconds[phase] || 0), 0);
  for (const phase of PHASES) {
    const part = document.createElement("i");
    part.style.background = `var(--${phase})`;
    part.style.width = total > 0 ? (100 * (seconds[phase] || 0)) / total + "%" : "0";
    part.title = `${phase} ${duration(seconds[phase])}`;
    bar.append(part);
  }
  return bar;
}

function drawChanges() {
  const rows = page.job.changes.map((change) => {
    const tr = row([change.t ? time(change.t) : "-", change.view, why(change), change.workers,
                    change.complete ? duration(change.total) : "...", phases(change.seconds), change.stepsLost]);
    tr.children[2].className = "why";
    return tr;
  });
  $("changes").tBodies[0].replaceChildren(...rows);
  if ($("legend").childElementCount === 0) {
    for (const phase of PHASES) {
      const mark = document.createElement("i");
      mark.style.background = `var(--${phase})`;
      $("legend").append(mark, phase);
    }
  }
}

function logButton(rank) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "log";
  button.addEventListener("click", () => openLog(rank.pod, workerNumber(rank)));
  return button;
}

// The number that stands in front of the worker's lines; null where it is the only one of its pod.
function workerNumber(rank) {
  const name = rank.worker.match(/-(\d+)\/(\d+)$/);
  return name ? Number(name[1]) * page.job.slots + Number(name[2]) : null;
}

function drawRanks() {
  const late = page.job.straggler ? page.job.straggler.rank : -1;
  const body = $("ranks").tBodies[0];
  if (body.contains(document.activeElement)) return;  // a button that somebody is about to press
  body.replaceChildren(...page.job.ranks.map((rank) => row(
    [rank.rank, rank.worker, number(rank.step), percent(rank.computes), percent(rank.blocked), percent(rank.waiting),
     percent(rank.running), rank.bytesPerSecond === null ? "-" : number(rank.bytesPerSecond / 1e6), logButton(rank)],
    rank.rank === late ? "late" : "")));
}

// ---- The line

function priority(job) {
  const number = job.priority === null ? "" : String(job.priority);
  if (!job.priorityClass) return number || "-";
  return number ? `${number} (${job.priorityClass})` : job.priorityClass;
}

function pods(job) {
  if (job.grows) return `${job.pods} of ${job.wanted}, trains`;
  return job.pods > 0 ? `${job.pods}, needs ${job.least}` : `needs ${job.least}` + (job.wanted > job.least ? ` to ${job.wanted}` : "");
}

function showButton(key) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = key;
  button.addEventListener("click", () => { show(key); $("jobs").value = key; });
  return button;
}

function drawLine(line) {
  $("line").hidden = line.length === 0;
  const body = $("waiting").tBodies[0];
  if (body.contains(document.activeElement)) return;  // a button that somebody is about to press
  $("line-says").textContent = line.length === 1 ? "one job" : `${line.length} jobs, the next one first`;
  const labels = ["", "", "priority", "waits", "pods", ""];
  body.replaceChildren(...line.map((job) => {
    const key = job.namespace + "/" + job.name;
    const tr = row([job.place === null ? `queue ${job.queue}` : job.place, showButton(key), priority(job), waited(job.waited), pods(job),
                    job.lacks + (job.reason ? ` (${job.reason})` : "")], key === page.key ? "shown" : "");
    labels.forEach((label, i) => { if (label) tr.cells[i].dataset.label = label; });
    tr.cells[5].className = "why";
    return tr;
  }));
}

// `worker`: a number in front of lines of the pod, null if they have none.
function openLog(pod, worker) {
  page.log = { namespace: page.job.namespace, pod, worker };
  $("log").hidden = false;
  $("log-of").textContent = pod;
  $("log-choice").hidden = worker === null;
  $("log-worker").textContent = `[${worker}]`;
  $("log-one").checked = worker !== null;
  readLog();
}

function readLog() {
  const asked = page.log;
  const one = $("log-one").checked ? `&worker=${asked.worker}` : "";
  $("log-text").textContent = "...";
  fetch(`/api/log?namespace=${encodeURIComponent(asked.namespace)}&pod=${encodeURIComponent(asked.pod)}&lines=500${one}`)
    .then((answer) => answer.text())
    .then((text) => {
      $("log-text").textContent = text || "it printed nothing";
      $("log-text").scrollTop = $("log-text").scrollHeight;
    })
    .catch((error) => { $("log-text").textContent = "not connected: " + error.message; });
}

// ---- All jobs

function listJobs() {
  fetch("/api/jobs")
    .then((answer) => {
      if (answer.status === 401) location.reload();  // the session is over
      return answer.json();
    })
    .then((seen) => {
      const keys = seen.jobs.map((job) => job.namespace + "/" + job.name);
      const options = seen.jobs.map((job, i) => new Option(`${keys[i]} (${job.state})`, keys[i]));
      $("jobs").replaceChildren(...options);
      const wanted = decodeURIComponent(location.hash.slice(1));
      if (page.key) $("jobs").value = page.key;
      else if (keys.length) show(keys.includes(wanted) ? wanted : keys[0]);
      if (page.key) $("jobs").value = page.key;
      if (!page.key) sayWhyNot(seen.error);  // else the job's stream says it
      $("none").hidden = keys.length > 0 || Boolean(seen.error);
      drawLine(seen.line);
    })
    .catch(() => {});
}

$("jobs").addEventListener("change", (event) => show(event.target.value));
$("value").addEventListener("change", (event) => { page.value = event.target.value; if (isSeen()) drawCharts(); });
$("heat-shows").addEventListener("change", () => { if (isSeen()) drawHeat(); });
$("log-one").addEventListener("change", readLog);
$("log-close").addEventListener("click", () => { $("log").hidden = true; });
window.addEventListener("resize", () => { if (isSeen()) { drawCharts(); drawHeat(); } });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (isSeen()) { makeCharts(); draw(); } });
// The token has become a cookie: it need not stay in the address.
history.replaceState(null, "", "/" + location.hash);
listJobs();
setInterval(listJobs, 3000);
