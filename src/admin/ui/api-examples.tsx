import type { ApiRequest } from './api-button'
import { ApiTokenButton, useApiToken } from './api-token'
import { CodeBlock } from './code-block'
import { TOKEN_PLACEHOLDER, writeCurl, writeFetch } from './request-code'

/** A request as `curl` and as JavaScript, with a token that can be made in place. */
export function ApiExamples({ request }: { request: ApiRequest }) {
  const made = useApiToken(`For ${request.path}`)
  const token = made.token ?? TOKEN_PLACEHOLDER
  return (
    <>
      <CodeBlock label="curl" code={writeCurl(request, token)} />
      <CodeBlock label="JavaScript" code={writeFetch(request, token)} />
      <ApiTokenButton {...made} />
    </>
  )
}
