"use strict";
// Shows the operator a token once; from there on a cookie stands for it, which no script can read.

document.getElementById("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = document.getElementById("token");
  const says = document.getElementById("says");
  const tell = (text) => { says.textContent = text; says.hidden = false; };
  fetch("/login", { headers: { Authorization: "Bearer " + token.value.trim() } })
    .then((answer) => (answer.ok ? location.reload() : answer.text().then(tell)))
    .catch((error) => tell("not connected: " + error.message));
  token.value = "";
});
