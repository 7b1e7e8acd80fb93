import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import { queryClient } from '../api/queries'
import { ProblemMessage } from './problem-message'

/** A token for examples, which is made when somebody asks for it. */
export function useApiToken(nickname: string) {
  const issue = useMutation({
    mutationFn: () =>
      sendWithProof((proof) => fetchData(api.POST('/api/me/api-tokens', { body: { nickname, ...proof } }))),
    // The account lists it.
    onSuccess: () => void queryClient.invalidateQueries({ queryKey: ['account'] }),
  })
  return { token: issue.data?.token, issue }
}

/** Makes a token for the examples beneath, or says that it is in them. */
export const ApiTokenButton = ({ token, issue }: ReturnType<typeof useApiToken>) => (
  <>
    {issue.error && <ProblemMessage error={issue.error} />}
    {token ? (
      <Text size="sm" role="status">
        The token is shown only once. It may do whatever you may do, until you delete it.
      </Text>
    ) : (
      <Button onClick={() => issue.mutate()} loading={issue.isPending}>
        Create an API token
      </Button>
    )}
  </>
)
