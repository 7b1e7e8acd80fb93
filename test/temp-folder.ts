import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const base = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), `atoll-test-${process.pid}-`))
// PostgreSQL servers run as another user, who has to reach their folders.
chmodSync(base, 0o711)
// Programs that tests start, such as browsers, put their own there.
process.env.TMPDIR = base

// Bun calls nothing when a run ends. The shell reads until this process is gone, even if it was killed. A backup of a server
// that was killed may still create folders.
const remove = `trap '' HUP INT TERM; cat; for pause in 0 1 2 4; do sleep $pause; rm -rf "$1"; done`
const remover = Bun.spawn(['sh', '-c', remove, 'sh', base], { stdin: 'pipe', stdout: 'ignore', stderr: 'ignore' })
remover.unref()
process.once('exit', () => remover.stdin.end())

/** Creates a folder that is removed when this process ends, however it ends. */
export const createTempFolder = (name = 'folder') => mkdtempSync(join(base, `${name}-`))
