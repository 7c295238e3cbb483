// The last seconds of the job that is shown, a lane for each rank: /api/timeline, asked again every
// few seconds while somebody can see it.
"use strict";

const LANES = { margin: 34, height: 22, axis: 18, changes: 14, again: 3000, open: 32 };

// `turn`: that of the page in which it was begun.
const timeline = { turn: 0, shown: null, asking: false, chosen: null };

// A job without ranks, or one that has been deleted, has none.
function timelineWanted() {
  if (page.turn !== timeline.turn || !isSeen() || page.job.state === "Deleted") return false;
  return page.key && $("timeline").open && !$("timeline-hold").checked && document.visibilityState === "visible";
}

function askTimeline() {
  if (page.turn !== timeline.turn) startTimeline();
  if (!timelineWanted() || timeline.asking) return;
  const { key, turn } = page;
  timeline.asking = true;
  fetch(`/api/timeline?job=${encodeURIComponent(key)}&seconds=${$("timeline-seconds").value}`)
    .then((answer) => (answer.ok ? answer.json() : answer.text().then((text) => Promise.reject(new Error(text.trim())))))
    .then((seen) => {
      if (page.turn !== turn || $("timeline-hold").checked) return;
      Object.assign(timeline, { shown: seen, chosen: null });
      drawTimeline();
    })
    .catch((error) => { if (page.turn === turn) $("timeline-says").textContent = "no timeline: " + error.message; })
    .finally(() => { timeline.asking = false; });
}

// Another job: of very many ranks nothing is asked until somebody opens it.
function startTimeline() {
  const ranks = page.job ? page.job.ranks.length : 0;
  if (!ranks) return;
  timeline.turn = page.turn;
  $("timeline").open = ranks <= LANES.open;
}

// What was drawn, and perhaps held, is another job's.
function clearTimeline() {
  Object.assign(timeline, { shown: null, chosen: null });
  timelineCanvas(0);
  $("timeline-hold").checked = false;
  $("timeline-says").textContent = "...";
  $("timeline-chosen").textContent = "";
}

function laneColors() {
  return { waits: color("--redo"), runs: color("--accent"), changes: color("--detect"), steps: color("--quiet") };
}

function timelineCanvas(lanes) {
  const canvas = $("timeline-lanes");
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 600;
  const height = LANES.changes + lanes * LANES.height + LANES.axis;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  return { ctx, width, height };
}

function drawTimeline() {
  const { shown } = timeline;
  if (!shown || !$("timeline").open) return;
  const { ctx, width, height } = timelineCanvas(shown.lanes.length);
  const perMs = (width - LANES.margin - 4) / Math.max(shown.ms, 1);
  const x = (ms) => LANES.margin + ms * perMs;
  const colors = laneColors();
  const late = shown.late.length ? shown.late[0].rank : -1;
  drawAxis(ctx, x, shown.ms, width, height);
  ctx.fillStyle = colors.changes;
  for (const [at, took] of shown.changes) ctx.fillRect(x(at), 2, Math.max(took * perMs, 2), LANES.changes - 5);
  shown.lanes.forEach((lane, i) => {
    const top = LANES.changes + i * LANES.height;
    ctx.fillStyle = color(lane.rank === late ? "--warn" : "--quiet");
    ctx.fillText(String(lane.rank), 6, top + LANES.height / 2);
    for (const [kind, inset] of [["waits", 5], ["runs", 2], ["changes", 2]]) {
      ctx.fillStyle = colors[kind];
      for (const [at, took] of lane[kind]) ctx.fillRect(x(at), top + inset, Math.max(took * perMs, 1), LANES.height - 2 * inset);
    }
    ctx.fillStyle = colors.steps;
    for (const [at] of lane.steps) ctx.fillRect(x(at), top, 1, LANES.height);
  });
  sayTimeline();
}

function drawAxis(ctx, x, ms, width, height) {
  const wanted = ms / Math.max(2, width / 90);
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((each) => each >= wanted) || 10000;
  ctx.fillStyle = color("--quiet");
  ctx.strokeStyle = color("--line");
  for (let at = 0; at <= ms; at += step) {
    ctx.beginPath();
    ctx.moveTo(x(at), LANES.changes);
    ctx.lineTo(x(at), height - LANES.axis);
    ctx.stroke();
    if (x(at) < width - 40) ctx.fillText(duration(at / 1000), x(at), height - LANES.axis / 2);
  }
}

function firstOf(texts) {
  return texts.slice(0, 5).join("; ") + (texts.length > 5 ? "; ..." : "");
}

function sayTimeline() {
  const { shown, chosen } = timeline;
  const says = [];
  if (shown.late.length) {
    const [first] = shown.late;
    says.push(`Rank ${first.rank} (${first.worker}) was the last in ${first.last} of ${shown.operations} operations: the others waited ${duration(first.waitedSeconds)} for it.`);
  } else if (shown.operations) {
    says.push(`In ${shown.operations} operations no rank was late.`);
  }
  if (!shown.lanes.length) says.push("No rank has told what it did.");
  if (shown.hidden) says.push(`${shown.hidden} more ranks are not drawn.`);
  if (shown.missing.length) says.push("Left out: " + firstOf(shown.missing));
  if (shown.uncompared.length) {
    says.push(`No operation tells how far these machines' clocks differ from the coordinator's: ${firstOf(shown.uncompared)}. ` +
      "The lanes of each end with what it did last; moments of different machines can't be compared.");
  }
  $("timeline-says").textContent = says.join(" ");
  $("timeline-chosen").textContent = chosen || "Press a bar to see what it is.";
}

// What is drawn where somebody has pressed.
function chooseBar(event) {
  const { shown } = timeline;
  if (!shown) return;
  const box = $("timeline-lanes").getBoundingClientRect();
  const perMs = (box.width - LANES.margin - 4) / Math.max(shown.ms, 1);
  const at = (event.clientX - box.left - LANES.margin) / perMs;
  const reach = 4 / perMs;  // a finger is no needle
  const near = (bars) => bars.filter(([begin, took]) => at >= begin - reach && at <= begin + took + reach)
    .sort((a, b) => Math.abs(a[0] + a[1] / 2 - at) - Math.abs(b[0] + b[1] / 2 - at))[0];
  const y = event.clientY - box.top - LANES.changes;
  if (y < 0) {
    const bar = near(shown.changes);
    timeline.chosen = bar ? `${bar[2]}${bar[3] ? " (" + bar[3] + ")" : ""}: ${duration(bar[1] / 1000)}` : null;
  } else {
    const lane = shown.lanes[Math.floor(y / LANES.height)];
    const bar = lane && (near(lane.changes) || near(lane.runs) || near(lane.waits));
    timeline.chosen = bar ? `Rank ${lane.rank} (${lane.worker}): ${bar[2]}, ${duration(bar[1] / 1000)}` : null;
  }
  sayTimeline();
}

document.addEventListener("another-job", clearTimeline);
$("timeline-lanes").addEventListener("click", chooseBar);
$("timeline").addEventListener("toggle", () => { drawTimeline(); askTimeline(); });
$("timeline-seconds").addEventListener("change", askTimeline);
$("timeline-hold").addEventListener("change", askTimeline);
window.addEventListener("resize", drawTimeline);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTimeline);
setInterval(askTimeline, LANES.again);
