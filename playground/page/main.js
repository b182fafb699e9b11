// The page: which view is shown, and the theme.
import { h, setText } from './dom.js';
import { storyView, isStep, first } from './story.js';
import { tryView } from './try.js';
import { logView } from './log.js';
import { consoleView } from './console.js';

const views = { story: 'A story', try: 'Try', log: 'Your log', console: 'Console' };
const content = document.getElementById('content');
let shown;

function show(focus) {
  const name = location.hash.slice(1).split('?')[0];
  const [view] = name.split('/');
  const known = isStep(name) || Object.hasOwn(views, name) && name !== 'story';
  const current = known ? view : 'story';
  for (const link of document.querySelectorAll('.top nav a')) {
    if (link.dataset.view === current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  shown?.close();
  const build = { try: tryView, log: logView, console: consoleView }[current] ?? (() => storyView(Number((known ? name : first).split('/')[1])));
  shown = build();
  content.replaceChildren(...(known || !name || name === 'story' ? [] : [h('p', { class: 'view warn', role: 'status' }, 'The page has no such view: the link may be cut off. This is where it begins.')]), shown.element);
  document.title = `${views[current]} · gothrottle playground`;
  if (focus) content.focus();
}

// The theme follows the system until the button is used.
const theme = document.getElementById('theme');
const dark = matchMedia('(prefers-color-scheme: dark)');
const kept = () => { try { return localStorage.getItem('theme'); } catch { return null; } };
function paint(choice) {
  const isDark = choice ? choice === 'dark' : dark.matches;
  if (choice) document.documentElement.dataset.theme = choice;
  setText(theme, isDark ? 'Light' : 'Dark');
  theme.setAttribute('aria-label', `Switch to ${isDark ? 'light' : 'dark'} colours`);
}
theme.addEventListener('click', () => {
  const choice = theme.textContent.toLowerCase();
  try { localStorage.setItem('theme', choice); } catch { /* a browser may keep nothing */ }
  paint(choice);
});
dark.addEventListener('change', () => paint(kept()));
paint(kept());

// The fragment is the view, so the link to the content moves only the focus.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener('hashchange', () => show(true));
show(false);
