import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from './cli'

/** The compiler of time zones, which Debian has in `libc-bin`; tests that need it are skipped without it. */
export const zoneCompiler = Bun.which('zic', { PATH: `${process.env.PATH}:/usr/sbin` })

/** Compiles lines of the time zone database as a release of the distant future. Returns the folder of the zones. */
export function compileZones(...lines: string[]): string {
  const folder = createTempFolder()
  const source = join(folder, 'tzdata.zi')
  writeFileSync(source, ['# version 2999z', ...lines, ''].join('\n'))
  const { exitCode, stderr } = Bun.spawnSync([zoneCompiler!, '-d', folder, source])
  if (exitCode) throw new Error(`${stderr}`)
  return folder
}
