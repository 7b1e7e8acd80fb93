import type { Command } from 'commander'

/** Asks on a terminal before something is destroyed; elsewhere, `--yes` has to say so. @throws a usage error without it */
export function requireConfirmation(command: Command, question: string, { yes }: { yes?: boolean }) {
  if (yes || (process.stdin.isTTY && process.stderr.isTTY && confirm(question))) return
  command.error(`${question} Add --yes to confirm.`)
}
