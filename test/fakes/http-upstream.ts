import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A request as the server received it. */
export type RecordedRequest = { method: string; url: string; headers: Record<string, string>; body: string }

/**
 * Starts a server that stands behind a path of the proxy. `on` has the handlers of its paths; any other path answers
 * with the recorded request.
 */
export async function startHttpUpstream(on: Record<string, Handler> = {}) {
  const seen: RecordedRequest[] = []
  /** The number of answers that were cut off. */
  let broken = 0
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request
    response.on('close', () => {
      if (!response.writableFinished) broken++
    })
    const handler = on[url.split('?')[0]!]
    if (handler) return handler(request, response)
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      const recorded = { method, url, headers: request.headers as Record<string, string>, body }
      seen.push(recorded)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(recorded))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    broken: () => broken,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
