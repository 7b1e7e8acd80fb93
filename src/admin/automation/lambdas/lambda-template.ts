/** The code of a new lambda, which runs at once. */
export const LAMBDA_TEMPLATE = `// Runs when an integration calls it, as a tool of an agent, or by hand.
export default async (request, atoll) => {
  const { name = 'world' } = request.body ?? {}
  atoll.log('Greeting', name)
  return { greeting: \`Hello, \${name}!\` }
}
`

/** The request of a first run by hand. */
export const LAMBDA_INPUT_TEMPLATE = '{\n  "body": { "name": "Ada" }\n}'
