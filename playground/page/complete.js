// An input for commands. Below it is the synopsis of the command, with what the word at the cursor means. Both come from the
// module's own table.
import { h, id } from './dom.js';
import { commands } from './program.js';

// hint returns what a text, up to the cursor, leads to: the arguments that the next word can be, and the words that complete
// it.
export function hint(text) {
  const words = text.trimStart().split(/\s+/);
  const typed = words.at(-1).toUpperCase();
  const command = commands.find(({ name }) => name === words[0].toUpperCase());
  if (words.length === 1 || !command) {
    const names = commands.filter(({ name }) => name.startsWith(typed));
    return { syntax: words.length > 1 ? '' : command?.syntax ?? '', args: [], words: words.length === 1 ? names.map(({ name }) => name) : [], summary: command?.summary };
  }
  const tokens = new Map();
  collect(command.args, tokens);
  let place = command.args.filter(plain), from = 1;
  words.slice(0, -1).forEach((word, i) => {
    const token = tokens.get(word.toUpperCase());
    if (token && i > 0) { place = token.then; from = i + 1; }
  });
  const arg = place[words.length - 1 - from];
  const given = new Set(words.slice(0, -1).map((word) => word.toUpperCase()));
  const next = [...tokens].filter(([name, { repeats }]) => name.startsWith(typed) && (repeats || !given.has(name)));
  const free = !arg || arg.optional;
  return { syntax: command.syntax, summary: command.summary, args: [...(arg ? [arg] : []), ...(free ? next.map(([name, token]) => ({ name, summary: token.summary })) : [])], words: free || typed ? next.map(([name]) => name) : [] };
}

// plain is an argument that is known by its place.
const plain = (arg) => !arg.token && !arg.sub.length;

// collect finds the keywords, and the arguments that follow each.
function collect(args, tokens, repeats = false) {
  for (const arg of args) {
    const again = repeats || arg.multiple;
    const then = arg.sub.length ? arg.sub.filter(plain) : [arg].filter(({ name }) => name !== arg.token);
    if (arg.token) tokens.set(arg.token, { summary: arg.summary, repeats: again, then });
    collect(arg.sub, tokens, again);
  }
}

// commandInput is the input. onchange is called with each new text; onenter, if given, with a whole one.
export function commandInput({ label, value = '', onchange = () => {}, onenter, onkey = () => {} }) {
  const help = h('p', { class: 'help', id: id('help') });
  const input = h('input', { type: 'text', class: 'command', 'aria-label': label, 'aria-describedby': help.id, value, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', maxlength: 4000 });
  const before = () => input.value.slice(0, input.selectionStart ?? 0);
  const show = () => {
    if (document.activeElement !== input) return help.replaceChildren();
    const { syntax, args, words, summary } = hint(before() + /^\S*/.exec(input.value.slice(before().length))[0]);
    const more = args.length || words.length < 2 ? args.slice(0, 6).map((arg) => h('span', {}, h('b', {}, arg.name), ` ${arg.summary}${arg.bounds ? ` (${arg.bounds})` : ''} `)) : [words.join('  ')];
    help.replaceChildren(h('code', {}, syntax), ' ', ...(args.length || !summary ? more : [summary]));
  };
  const put = (text) => { input.value = text; onchange(text); show(); };
  input.addEventListener('input', () => { onchange(input.value); show(); });
  for (const name of ['focus', 'click', 'keyup']) input.addEventListener(name, show);
  input.addEventListener('blur', () => setTimeout(show));
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && onenter) onenter(input.value);
    else if (event.key === 'Tab' && !event.shiftKey && complete(input, before(), put)) event.preventDefault();
    else onkey(event, put);
  });
  return { element: h('div', { class: 'command-box' }, input, help), input, put };
}

// complete completes the word at the cursor as far as it is certain. It reports whether that changed anything, so that a
// second Tab goes on to the next control.
function complete(input, text, put) {
  const typed = /\S*$/.exec(text)[0];
  const { words } = hint(text);
  if (!typed || !words.length || input.selectionStart !== input.value.length) return false;
  let common = words[0];
  while (!words.every((word) => word.startsWith(common))) common = common.slice(0, -1);
  if (common.length <= typed.length) return false;
  put(text.slice(0, text.length - typed.length) + common + (words.length === 1 ? ' ' : ''));
  return true;
}
