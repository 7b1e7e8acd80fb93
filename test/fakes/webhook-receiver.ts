/** A delivery as the receiver got it. */
export type ReceivedDelivery = {
  path: string
  id: string
  headers: Record<string, string>
  text: string
  body: { _id: string } & Record<string, unknown>
}

/** Starts a server that receives events. `answer` returns the response, or its status, to each delivery. */
export function startWebhookReceiver(
  answer: (got: ReceivedDelivery) => Response | number | Promise<Response | number> = () => 200,
) {
  const got: ReceivedDelivery[] = []
  const own = { answer }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const headers = Object.fromEntries(request.headers)
      const text = await request.text()
      const { pathname: path } = new URL(request.url)
      const delivery = { path, id: headers['webhook-id']!, headers, text, body: text ? JSON.parse(text) : undefined }
      got.push(delivery)
      const reply = await own.answer(delivery)
      return typeof reply === 'number' ? new Response(null, { status: reply }) : reply
    },
  })
  return { got, own, url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}
export type WebhookReceiver = ReturnType<typeof startWebhookReceiver>
