import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import { getNamedTenant } from '../api/session'
import type { ApiRequest } from './api-button'
import { CodeBlock } from './code-block'
import { ProblemMessage } from './problem-message'

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Returns a request as a command of curl and as a call of fetch. */
function writeExamples({ method, path, query, body }: ApiRequest, token: string) {
  const tenant = getNamedTenant()
  const parameters = new URLSearchParams(query).toString().replace(/%(24|5B|5D|2C|3A)/g, decodeURIComponent)
  const url = `${location.origin}${path}${parameters && `?${parameters}`}`
  const headers = { 'X-Api-Key': token, ...(tenant && { tenant }) }
  const curl = [
    method === 'GET' ? 'curl' : `curl -X ${method}`,
    ...Object.entries(headers).map(([name, value]) => `  -H '${name}: ${value}'`),
    ...(body === undefined ? [] : [`  --json ${quoteForShell(JSON.stringify(body))}`]),
    `  ${quoteForShell(url)}`,
  ].join(' \\\n')
  const options = {
    ...(method !== 'GET' && { method }),
    headers: { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
  }
  const written = JSON.stringify(options, null, 2).slice(0, -2)
  const fetched = `const response = await fetch(${JSON.stringify(url)}, ${written}${
    body === undefined ? '' : `,\n  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')})`
  }\n})\nconst result = await response.json()`
  return { curl, fetched }
}

const TOKEN_PLACEHOLDER = 'YOUR_API_TOKEN'

/** A request as `curl` and as JavaScript, with a token that can be made in place. */
export function ApiExamples({ request }: { request: ApiRequest }) {
  const issue = useMutation({
    mutationFn: () =>
      sendWithProof((proof) =>
        fetchData(api.POST('/api/me/api-tokens', { body: { nickname: `For ${request.path}`, ...proof } })),
      ),
  })
  const { curl, fetched } = writeExamples(request, issue.data?.token ?? TOKEN_PLACEHOLDER)
  return (
    <>
      <CodeBlock label="curl" code={curl} />
      <CodeBlock label="JavaScript" code={fetched} />
      {issue.error && <ProblemMessage error={issue.error} />}
      {issue.data ? (
        <Text size="sm">The token is shown this once. It may do what you may, until you delete it.</Text>
      ) : (
        <Button onClick={() => issue.mutate()} loading={issue.isPending}>
          Create an API token
        </Button>
      )}
    </>
  )
}
