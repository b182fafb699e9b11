// An input for commands. Below it is the synopsis of the command, from the module's own table, or the names that begin so.
import { h, id } from './dom.js';
import { commands } from './program.js';

export function commandInput(label, attributes) {
  const help = h('p', { class: 'help quiet-text', id: id('help') });
  const show = () => {
    const typed = input.value.trim().split(/\s+/)[0].toUpperCase();
    const command = commands.find(({ name }) => name === typed);
    const names = commands.map(({ name }) => name).filter((name) => name.startsWith(typed));
    help.replaceChildren(...(command ? [h('code', {}, command.syntax), ` ${command.summary}`] : [names.join('  ')]));
  };
  const input = h('input', { type: 'text', class: 'command', 'aria-label': label, 'aria-describedby': help.id, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', maxlength: 4000,
    onfocus: show, onblur: () => setTimeout(() => help.replaceChildren()), ...attributes });
  input.addEventListener('input', show);
  return { element: h('div', {}, input, help), input };
}
