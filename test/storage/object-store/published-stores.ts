import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../../temp-folder'
import { waitUntil } from '../../wait-until'

/** Published programs that speak S3, and how each is started with a bucket `files`. */
const PROGRAMS = {
  versitygw: (port: number, folder: string) => {
    mkdirSync(join(folder, 'files'))
    return ['--access', 'key', '--secret', 'secret', '--port', `127.0.0.1:${port}`, '--quiet', 'posix', folder]
  },
  gofakes3: (port: number) => ['-host', `127.0.0.1:${port}`, '-backend', 'memory', '-initialbucket', 'files', '-quiet'],
}
export type ProgramName = keyof typeof PROGRAMS

const pathOf = (name: ProgramName) => Bun.which(name, { PATH: `${process.env.PATH}:${process.env.HOME}/go/bin` })

/** Returns the names of the programs, and whether each is installed here (`go install`, see CONTRIBUTING). */
export const publishedStores = () =>
  (Object.keys(PROGRAMS) as ProgramName[]).map((name) => {
    const isInstalled = !!pathOf(name)
    if (!isInstalled) console.warn(`Skipped: ${name} is not installed. CONTRIBUTING.md says how to install it.`)
    return { name, isInstalled }
  })

/** Starts a program on a port of the loopback. */
export async function startPublishedStore(name: ProgramName) {
  const folder = createTempFolder('store')
  const taken = Bun.serve({ port: 0, fetch: () => new Response() })
  const port = taken.port!
  await taken.stop(true)
  const child = Bun.spawn([pathOf(name)!, ...PROGRAMS[name](port, folder)], { stdout: 'ignore', stderr: 'ignore' })
  const endpoint = `http://127.0.0.1:${port}`
  await waitUntil(
    () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    Boolean,
    20_000,
  )
  const access = { endpoint, region: 'us-east-1', accessKeyId: 'key', secretAccessKey: 'secret' }
  return {
    access,
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      await Bun.$`rm -rf ${folder}`
    },
  }
}
