import type { ApiRequest } from './api-button'
import { ApiTokenButton, useApiToken } from './api-token'
import { CodeBlock } from './code-block'
import { TOKEN_PLACEHOLDER, writeCurl, writeFetch } from './request-code'

/** A request as `curl` and as JavaScript, with a token that can be created here. */
export function ApiExamples({ request }: { request: ApiRequest }) {
  const apiToken = useApiToken(`For ${request.path}`)
  const token = apiToken.token ?? TOKEN_PLACEHOLDER
  return (
    <>
      <CodeBlock label="curl" code={writeCurl(request, token)} />
      <CodeBlock label="JavaScript" code={writeFetch(request, token)} />
      <ApiTokenButton {...apiToken} />
    </>
  )
}
