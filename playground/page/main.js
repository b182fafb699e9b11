// The page: which view is shown, and the theme.
import { h, setText } from './dom.js';
import { tryView } from './try.js';
import { compareView } from './compare.js';
import { watchView } from './watch.js';
import { setLink } from './link.js';

const views = { try: tryView, compare: compareView, watch: watchView };
const content = document.getElementById('content');
let shown;
let about;

function show(focus) {
  let name = location.hash.slice(1).split('?')[0];
  if (!Object.hasOwn(views, name)) name = about.play ? 'try' : 'watch';
  shown?.close();
  shown = about.play || name === 'watch' ? views[name](about) : readOnly();
  content.replaceChildren(shown.element);
  document.title = `${{ try: 'Try', compare: 'Compare', watch: 'Watch' }[name]} · gothrottle playground`;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (location.hash.startsWith(`#${name}?`)) setLink(location.hash);
  if (focus) content.focus();
}

// readOnly stands where traffic would be sent, if the page may only read.
function readOnly() {
  return { element: h('div', { class: 'view' }, h('div', { class: 'lead' }, h('h1', {}, 'This page only reads'),
    h('p', {}, `It watches ${about.addr}, and sends no traffic to it. To try limiters, start a playground of your own with `, h('code', {}, 'make playground'), '.'))), close: () => {} };
}

// The theme follows the system until the button is used.
const button = document.getElementById('theme');
const dark = matchMedia('(prefers-color-scheme: dark)');
function theme(choice) {
  const isDark = choice ? choice === 'dark' : dark.matches;
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  setText(button, isDark ? 'Light' : 'Dark');
  button.setAttribute('aria-label', `Switch to ${isDark ? 'light' : 'dark'} colours`);
}
button.addEventListener('click', () => {
  const choice = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('theme', choice);
  theme(choice);
});
dark.addEventListener('change', () => theme(localStorage.getItem('theme')));
theme(localStorage.getItem('theme'));

// The fragment is the view, so the link to the content moves only the focus.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener('hashchange', () => show(true));
about = await (await fetch('/api/about')).json();
setText(document.getElementById('about'), `gothrottle ${about.version} at ${about.addr}. ${about.play ? 'Try and Compare use keys that begin with “playground”, and delete them when the page closes.' : 'The page only reads from it.'}`);
show(false);
