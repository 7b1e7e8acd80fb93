// Builds what is published, from the same text that `atoll types --client` writes: `bun client/build.ts`.
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { anyKindSource, clientSource, entitySource, toHooksSource } from '../src/blueprints/typegen/client-source'

const folder = import.meta.dir
const compiler = resolve(folder, '../node_modules/typescript/bin/tsc')

/** Without types of blueprints, every key leads to entities of any kind. */
const ANY_BLUEPRINT = 'export interface Blueprints {\n  [key: string]: AnyKind\n}\n'

rmSync(join(folder, 'dist'), { recursive: true, force: true })
const draft = join(folder, 'dist/source')
await Bun.write(join(draft, 'index.ts'), [entitySource, ANY_BLUEPRINT, anyKindSource, clientSource].join('\n'))
await Bun.write(join(draft, 'hooks.ts'), toHooksSource('./index.js'))
const compilerOptions = {
  ...{ target: 'ES2022', module: 'NodeNext', lib: ['ES2022', 'DOM'], types: [], strict: true },
  ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
  ...{ declaration: true, rootDir: '.', outDir: '..' },
}
await Bun.write(join(draft, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['index.ts', 'hooks.ts'] }))
const child = Bun.spawn([process.execPath, compiler, '-p', draft], { stdout: 'inherit', stderr: 'inherit' })
const code = await child.exited
rmSync(draft, { recursive: true })
process.exit(code)
