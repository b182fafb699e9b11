// The page: which view is shown.
import { h } from './dom.js';
import { storyView, isStep } from './story.js';
import { tryView } from './try.js';
import { logView } from './log.js';
import { consoleView } from './console.js';
import { ready } from './program.js';

const views = { story: storyView, try: tryView, log: logView, console: consoleView };
const content = document.getElementById('content');
let shown, arrived = false;

function show(focus) {
  const [name] = location.hash.slice(1).split('?');
  const known = name === '' || isStep(name) || Object.hasOwn(views, name);
  const view = known && name.split('/')[0] || 'story';
  for (const link of document.querySelectorAll('.top nav a')) link.ariaCurrent = link.dataset.view === view ? 'page' : null;
  shown?.close?.();
  // The story has its first picture before the limiter is here.
  shown = arrived || view === 'story' ? views[view](name) : { element: h('p', { class: 'view', role: 'status' }, 'Loading the limiter …') };
  content.replaceChildren(known ? '' : h('p', { class: 'view warn', role: 'status' }, 'The page has no such view: the link may be cut off. This is where it begins.'), shown.element);
  document.title = `${document.querySelector('.top nav [aria-current]').textContent} · gothrottle playground`;
  if (focus) content.focus();
}

// The fragment is the view, so the link to the content moves only the focus.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener('hashchange', () => show(true));
show(false);
ready.then(() => {
  arrived = true;
  if (!location.hash.startsWith('#story') && location.hash) show(false);
}, () => content.prepend(h('p', { class: 'view error', role: 'alert' }, 'The limiter did not arrive: load the page again. Without it, nothing is decided.')));
