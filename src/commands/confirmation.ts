import type { Command } from 'commander'

/** Asks for confirmation on a terminal; elsewhere `--yes` is required. @throws CommanderError without a confirmation */
export function requireConfirmation(command: Command, question: string, { yes }: { yes?: boolean }) {
  if (yes || (process.stdin.isTTY && process.stderr.isTTY && confirm(question))) return
  command.error(`${question} Add --yes to confirm.`)
}
