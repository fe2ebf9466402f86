// What pages have besides htmx: the code of a link, countdowns, and the alert of a new call. All pages work without.
"use strict";

function takeCode() {
  const form = document.querySelector("form[data-takes-code]");
  const code = location.hash.slice(1);
  if (form && code) {
    history.replaceState(null, "", location.pathname); // it is not kept in the history
    form.elements.code.value = code;
    form.requestSubmit();
  }
}

const ends = new WeakMap();

// The server says how many seconds are left: this machine's clock may be wrong.
function countDown() {
  const now = performance.now() / 1000;
  let over = false;
  for (const each of document.querySelectorAll("[data-left]")) {
    if (!ends.has(each)) ends.set(each, now + Number(each.dataset.left));
    const left = ends.get(each) - now;
    over ||= left <= 0;
    each.textContent = `${Math.max(0, Math.ceil(left))} s`;
  }
  if (over) document.body.dispatchEvent(new Event("over"));
}

const title = document.title;
let waiting = 0;

function beep() {
  const context = new AudioContext();
  const tone = context.createOscillator();
  const volume = context.createGain();
  volume.gain.value = 0.08;
  tone.frequency.value = 660;
  tone.connect(volume).connect(context.destination);
  tone.start();
  tone.stop(context.currentTime + 0.15);
  tone.onended = () => context.close();
}

function showCount(alerts) {
  const element = document.querySelector("[data-alerts] [data-waiting]");
  if (!element) return;
  const count = Number(element.dataset.waiting);
  document.title = count ? `(${count}) ${title}` : title;
  if (alerts && count > waiting) {
    beep();
    if (document.hidden && window.Notification?.permission === "granted") new Notification(element.textContent);
  }
  waiting = count;
}

// The browser asks for permission only after a click.
function offerNotifications() {
  const button = document.querySelector("[data-notify]");
  if (!button || window.Notification?.permission !== "default") return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    button.hidden = window.Notification.permission !== "default";
  });
}

takeCode();
offerNotifications();
window.addEventListener("hashchange", takeCode); // a link that is opened where the form is open already
showCount(false);
countDown();
setInterval(countDown, 1000);
document.body.addEventListener("htmx:afterSwap", () => { showCount(true); countDown(); });
