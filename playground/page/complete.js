// An input for commands. Below it is the synopsis of the command, from the module's own table. Tab completes the command's
// name and its keywords.
import { h, id } from './dom.js';
import { commands } from './program.js';

// hint returns what a text leads to: the command, if it is known, and the words that complete the last one.
function hint(text) {
  const words = text.trimStart().toUpperCase().split(/\s+/);
  const command = commands.find(({ name }) => name === words[0]);
  const keywords = command?.syntax.slice(command.name.length).match(/\b[A-Z]{2,}\b/g) ?? [];
  const next = words.length === 1 ? commands.map(({ name }) => name) : [...new Set(keywords)];
  return { command, words: next.filter((word) => word.startsWith(words.at(-1))) };
}

// commandInput is the input. onchange is called with each new text; onenter, if given, with a whole one.
export function commandInput({ label, value = '', onchange = () => {}, onenter, onkey = () => {} }) {
  const help = h('p', { class: 'help', id: id('help') });
  const show = () => {
    const { command, words } = hint(input.value);
    help.replaceChildren(...(command ? [h('code', {}, command.syntax), ` ${command.summary}`] : [words.join('  ')]));
  };
  const put = (text) => { input.value = text; onchange(text); show(); };
  const input = h('input', { type: 'text', class: 'command', 'aria-label': label, 'aria-describedby': help.id, value, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', maxlength: 4000,
    onfocus: show, onblur: () => setTimeout(() => help.replaceChildren()), oninput: () => { onchange(input.value); show(); }, onkeydown: (event) => {
      if (event.key === 'Enter' && onenter) onenter(input.value);
      else if (event.key === 'Tab' && !event.shiftKey && complete(input, put)) event.preventDefault();
      else onkey(event, put);
    } });
  return { element: h('div', {}, input, help), input, put };
}

// complete completes the last word as far as it is certain. It reports whether that changed anything, so that a second Tab
// goes on to the next control.
function complete(input, put) {
  const [typed] = /\S*$/.exec(input.value);
  const { words } = hint(input.value);
  if (!typed || !words.length || input.selectionStart !== input.value.length) return false;
  let common = words[0];
  while (!words.every((word) => word.startsWith(common))) common = common.slice(0, -1);
  if (common.length <= typed.length) return false;
  put(input.value.slice(0, -typed.length) + common + (words.length === 1 ? ' ' : ''));
  return true;
}
