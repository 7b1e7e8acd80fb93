// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, startAtoll } from '../fakes/cli'

// A cold compiler takes most of this.
setDefaultTimeout(300_000)

const PROGRAMS = join(import.meta.dir, 'clients')
const { PATH, ...environment } = process.env
const path = [PATH, join(homedir(), 'go/bin'), join(homedir(), '.local/bin')].join(':')
const isInstalled = (program: string) => {
  const found = !!Bun.which(program, { PATH: path })
  if (!found) console.warn(`Skipped: ${program} is not installed. CONTRIBUTING.md says how to install it.`)
  return found
}

/** The file of openapi-generator-cli. Its client takes minutes to compile. */
const { TEST_JAVA_GENERATOR: JAVA_GENERATOR = '' } = process.env
if (!JAVA_GENERATOR) console.warn('Skipped: TEST_JAVA_GENERATOR is not set. CONTRIBUTING.md says what it is.')

const HEY_API = join(import.meta.dir, 'hey-api')
const HEY_API_PATH = { PATH: [join(HEY_API, 'node_modules/.bin'), path].join(':') }
function isHeyApiInstalled() {
  const found = existsSync(join(HEY_API, 'node_modules'))
  if (!found) console.warn('Skipped: run `npm ci --prefix test/description/hey-api` first.')
  return found
}

const tsconfig = {
  compilerOptions: {
    ...{ target: 'ESNext', module: 'ESNext', moduleResolution: 'bundler', lib: ['ESNext', 'DOM', 'DOM.Iterable'] },
    ...{ types: [], strict: true, noUncheckedIndexedAccess: true, noEmit: true, skipLibCheck: true },
  },
  files: ['program.ts', 'process.d.ts'],
}

async function run(command: string[], cwd: string, more: Record<string, string> = {}) {
  const env = { ...environment, PATH: path, ...more }
  const child = Bun.spawn(command, { cwd, env, stderr: 'pipe' })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { out, err, code }
}

/** Starts a server and writes its description into a folder. */
async function describeServer() {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const server = await startAtoll(at)
  const folder = createTempFolder()
  const document = await (await fetch(`${server.url}/openapi/json`)).text()
  await Bun.write(join(folder, 'api.json'), document)
  const { paths } = JSON.parse(document) as { paths: Record<string, object> }
  const operations = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0)
  return { server, folder, operations }
}

const changedEntity = {
  ...{ user: 'root', title: 'Two', stale: 412, code: 'VERSION_MISMATCH', titles: 'Two', count: '1', deleted: 200 },
}

describe('generated clients sign in, create a blueprint and an entity, change it by its version, list it and delete it', () => {
  test.skipIf(!isInstalled('oapi-codegen') || !isInstalled('go'))('in Go', async () => {
    const { server, folder } = await describeServer()
    await using _ = server
    mkdirSync(join(folder, 'api'))
    for (const name of ['main.go', 'go.mod', 'go.sum']) copyFileSync(join(PROGRAMS, `${name}.txt`), join(folder, name))
    const generate = ['oapi-codegen', '-generate', 'types,client', '-package', 'api', '-o', 'api/api.go', 'api.json']
    expect(await run(generate, folder)).toMatchObject({ code: 0, err: '' })
    const built = await run(['go', 'build', '-o', 'program', '.'], folder, { GOFLAGS: '-mod=mod' })
    expect([built.code, built.err.replace(/^go: downloading.*\n/gm, '')]).toEqual([0, ''])
    const { out, err, code } = await run(['./program', server.url], folder)
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toEqual(changedEntity)
  })

  test.skipIf(!JAVA_GENERATOR || !isInstalled('mvn'))(
    'in Java',
    async () => {
      const { server, folder } = await describeServer()
      await using _ = server
      // Otherwise each list that is left out is sent as an empty one.
      const options = ['--additional-properties', 'containerDefaultToNull=true']
      const generate = ['java', '-jar', JAVA_GENERATOR, 'generate', '-i', 'api.json', '-g', 'java', '-o', 'java']
      expect((await run([...generate, ...options], folder)).code).toBe(0)
      const project = join(folder, 'java')
      copyFileSync(join(PROGRAMS, 'Program.java.txt'), join(project, 'src/main/java/Program.java'))
      const goals = ['compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath.txt']
      const built = await run(['mvn', '-q', '-B', ...goals], project)
      expect([built.code, built.out]).toEqual([0, expect.not.stringContaining('ERROR')])
      const classes = `target/classes:${readFileSync(join(project, 'classpath.txt'), 'utf8')}`
      const { out, err, code } = await run(['java', '-cp', classes, 'Program', server.url], project)
      expect([code, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toEqual(changedEntity)
    },
    900_000,
  )

  test.skipIf(!isHeyApiInstalled())('in TypeScript, with another generator and in strict mode', async () => {
    const { server, folder } = await describeServer()
    await using _ = server
    const generate = ['openapi-ts', '-i', 'api.json', '-o', 'sdk', '-c', '@hey-api/client-fetch']
    expect(await run(generate, folder, HEY_API_PATH)).toMatchObject({ code: 0 })
    copyFileSync(join(PROGRAMS, 'hey-api.ts.txt'), join(folder, 'program.ts'))
    await Bun.write(join(folder, 'process.d.ts'), 'declare const process: { argv: string[] }\n')
    await Bun.write(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
    expect(await run(['tsc', '-p', '.'], folder, HEY_API_PATH)).toEqual({ out: '', err: '', code: 0 })
    const { out, err, code } = await run([process.execPath, 'program.ts', server.url], folder)
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toEqual(changedEntity)
  })

  test.skipIf(!isInstalled('openapi-python-client'))('in Python, with every operation and no warning', async () => {
    const { server, folder, operations } = await describeServer()
    await using _ = server
    const generate = ['generate', '--path', 'api.json', '--output-path', 'atoll_client', '--meta', 'none']
    const generated = await run(['openapi-python-client', ...generate], folder)
    expect([generated.code, generated.out.replace(/Skipping Integration\s+ruff is not in PATH\s*/g, '')]).toEqual([
      0,
      expect.not.stringMatching(/warning/i),
    ])
    const modules = [...new Bun.Glob('atoll_client/api/*/*.py').scanSync(folder)]
    expect(modules.filter((name) => !name.endsWith('__init__.py'))).toBeArrayOfSize(operations)
    copyFileSync(join(PROGRAMS, 'program.py.txt'), join(folder, 'program.py'))
    const { out, err, code } = await run([interpreterOf('openapi-python-client'), 'program.py', server.url], folder)
    expect([code, err]).toEqual([0, ''])
    const { modules: imported, ...rest } = JSON.parse(out)
    expect(rest).toEqual(changedEntity)
    expect(imported).toBeGreaterThan(operations)
  })
})

/** Returns the Python of a program, which has what the clients that it generates need. */
function interpreterOf(program: string) {
  const file = Bun.which(program, { PATH: path }) ?? ''
  const interpreter = readFileSync(file, 'utf8').match(/^#!(\S*python\S*)/)?.[1] ?? ''
  return existsSync(interpreter) ? interpreter : 'python3'
}
