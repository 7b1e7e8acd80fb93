import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { copyHelpDesk, runPackage } from './help-desk-files'

// The types of the client come from the definitions, so they are made first.
const { folder } = await copyHelpDesk()
try {
  await runPackage(folder, 'typescript/bin/tsc')
} finally {
  rmSync(dirname(folder), { recursive: true })
}
