import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../wait-until'
import { createTempFolder } from './cli'

export const prometheusPath = Bun.which('prometheus')
if (!prometheusPath)
  console.warn('SKIPPED: the tests with Prometheus, because it was not found (apt-get install prometheus).')

/** Starts a Prometheus with this configuration, for `await using`. Files of rules have absolute paths. */
export async function startPrometheus(configuration: string) {
  const folder = createTempFolder()
  writeFileSync(join(folder, 'prometheus.yml'), configuration)
  const child = Bun.spawn(
    [
      ...[prometheusPath!, `--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`],
      ...['--web.listen-address=127.0.0.1:0', '--log.format=json'],
    ],
    { cwd: folder, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  )
  const lines: string[] = []
  void (async () => {
    for await (const line of readLines(child.stderr)) lines.push(line)
  })()
  const findAddress = () => lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'Listening on')?.address
  let url = ''
  try {
    url = `http://${await waitUntil(findAddress)}`
    // It answers 503 until it has read its own data.
    await waitUntil(async () => (await fetch(`${url}/-/ready`)).ok)
  } catch (cause) {
    child.kill()
    throw new Error(`Prometheus did not start: ${lines.join('\n')}`, { cause })
  }
  return {
    /** Asks its API. @see https://prometheus.io/docs/prometheus/latest/querying/api */
    async ask(path: string, parameters: Record<string, string> = {}) {
      const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
      // biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
      return (await response.json()) as any
    },
    [Symbol.asyncDispose]: async () => {
      child.kill()
      await child.exited
    },
  }
}

async function* readLines(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
  let rest = ''
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop()!
    yield* parts
  }
}
