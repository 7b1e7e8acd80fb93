/** A delivery as it was received. */
export type ReceivedDelivery = {
  path: string
  id: string
  headers: Record<string, string>
  text: string
  body: { _id: string } & Record<string, unknown>
}

/** Returns the response to a delivery, or only its status. */
type Answer = (delivery: ReceivedDelivery) => Response | number | Promise<Response | number>

/** A server that receives events. Its `answer` can be replaced at any time. */
type WebhookReceiver = { deliveries: ReceivedDelivery[]; answer: Answer; url: string; stop(): Promise<void> }

/** Starts a server that receives events, and answers 200 to each. */
export function startWebhookReceiver(): WebhookReceiver {
  const deliveries: ReceivedDelivery[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const headers = Object.fromEntries(request.headers)
      const text = await request.text()
      const { pathname: path } = new URL(request.url)
      const delivery = { path, id: headers['webhook-id']!, headers, text, body: text ? JSON.parse(text) : undefined }
      deliveries.push(delivery)
      const reply = await receiver.answer(delivery)
      return typeof reply === 'number' ? new Response(null, { status: reply }) : reply
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  const receiver: WebhookReceiver = { deliveries, answer: () => 200, url, stop: () => server.stop(true) }
  return receiver
}
