import type { Static } from '@sinclair/typebox'
import { readLogTail } from '../core/log-tail'
import { badRequest } from '../core/problem'
import { askOtherProcesses } from '../core/server-processes'
import { PROCESS_TOPICS } from './process-topics'
import type { LogLine, LogQuery } from './shapes'

const LEVELS = ['debug', 'info', 'warn', 'error']
const DEFAULT_LIMIT = 200
const MAX_LIMIT = 1_000

/** Returns the latest lines of the log of this server, from a level on, latest first. @throws 400 INVALID_INPUT */
export async function listLogLines({
  level = 'debug',
  q = '',
  limit,
}: Static<typeof LogQuery>): Promise<Static<typeof LogLine>[]> {
  if (limit && !/^\d{1,9}$/.test(limit)) badRequest({ path: 'limit', message: 'limit must be a whole number.' })
  const maxLines = Math.min(MAX_LIMIT, Number(limit ?? DEFAULT_LIMIT))
  const found: Static<typeof LogLine>[] = []
  for (const text of await readLogTails()) {
    if (found.length >= maxLines) break
    if (!text.includes(q)) continue
    const line = JSON.parse(text) as { level: string; time: string }
    if (LEVELS.indexOf(line.level) >= LEVELS.indexOf(level))
      found.push({ level: line.level, time: line.time, text: text.trimEnd() })
  }
  return found
}

/** Returns the lines that the server processes keep, the latest first. */
async function readLogTails(): Promise<string[]> {
  const others = await askOtherProcesses<string[]>(PROCESS_TOPICS.log)
  if (!others.length) return readLogTail()
  const timeOf = (line: string) => /"time":"([^"]*)"/.exec(line)?.[1] ?? ''
  return [readLogTail(), ...others].flat().sort((one, other) => (timeOf(one) < timeOf(other) ? 1 : -1))
}
