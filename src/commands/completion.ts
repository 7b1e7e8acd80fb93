import { Argument, Command } from 'commander'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export const completion = new Command('completion')
  .description('Print a shell completion script')
  .addArgument(new Argument('<shell>', 'shell').choices(SHELLS))
  .addHelpText('after', '\nExample:\n  atoll completion bash > /etc/bash_completion.d/atoll')
  .action((shell: (typeof SHELLS)[number], _options: object, command: Command) => {
    const lines = describeCommands(command.parent!, [])
    console.log(shell === 'fish' ? fishScript(lines) : bashScript(lines, shell))
  })

/** The words that can follow a command: the path `tenant create` has the words `--host`, `--json`, … */
type Completion = { path: string; words: string[] }

function describeCommands(command: Command, path: string[]): Completion[] {
  const options = command.options.map(({ long }) => long).filter((long) => long !== undefined)
  const names = command.commands.map((child) => child.name())
  return [
    { path: path.join(' '), words: [...names, ...options, '--help'] },
    ...command.commands.flatMap((child) => describeCommands(child, [...path, child.name()])),
  ]
}

const bashScript = (completions: Completion[], shell: 'bash' | 'zsh') =>
  `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_atoll() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${completions.map(({ path, words }) => `      '${path}') words='${words.join(' ')}'; break ;;`).join('\n')}
    esac
    case "$path" in *' '*) path="\${path% *}" ;; *) path='' ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _atoll atoll`

const fishScript = (completions: Completion[]) =>
  completions
    .map(({ path, words }) => {
      const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`)
      const condition = path ? seen.join('; and ') : '__fish_use_subcommand'
      return `complete -c atoll -f -n '${condition}' -a '${words.join(' ')}'`
    })
    .join('\n')
