import { join, resolve } from 'node:path'
import { createTempFolder } from '../../fakes/cli'

const TSC_PATH = resolve('node_modules/typescript/bin/tsc')
const STRICT_OPTIONS = {
  noEmit: true,
  target: 'ES2022',
  module: 'ESNext',
  moduleResolution: 'bundler',
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noImplicitOverride: true,
  noImplicitReturns: true,
  noPropertyAccessFromIndexSignature: true,
  noUncheckedIndexedAccess: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  erasableSyntaxOnly: true,
  verbatimModuleSyntax: true,
}

/** Compiles these files as a browser project, or with other `lib` or `types`; returns the output and exit code of the compiler. */
export async function compileTypeScript(files: Record<string, string>, options: object = { lib: ['ES2022', 'DOM'] }) {
  const folder = createTempFolder()
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text)
  await Bun.write(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...STRICT_OPTIONS, ...options }, include: Object.keys(files) }),
  )
  const child = Bun.spawn([process.execPath, TSC_PATH, '--pretty', 'false', '-p', folder], {
    cwd: folder,
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { folder, output: out + err, code: await child.exited }
}

/** The result of a compilation without errors. */
export const COMPILES_CLEANLY = { code: 0, output: '' }
