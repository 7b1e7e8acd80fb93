import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { OperatorToken } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { useListRows } from '../ui/list-rows'
import { showNotice, showProblem } from '../ui/notices'
import { RelativeTime } from '../ui/relative-time'
import { SidePanel } from '../ui/side-panel'
import { operatorApi, refetchOperator } from './operator-api'
import { TokenExpiry } from './token-expiry'
import { listScopes } from './token-scopes'

const route = getRouteApi('/operator/tokens/$token')

/** One token of the operator: what it allows, when it was used, and a button that revokes it. */
export function TokenPanel() {
  const { token: id } = route.useParams()
  const navigate = useNavigate()
  const close = () => navigate({ to: '/operator/tokens' })
  const { rows } = useListRows(['operator', 'tokens'], () => operatorApi.GET('/operator/tokens'))
  const token = rows.find(({ _id }) => _id === id)
  if (!token) return null
  return (
    <SidePanel title={token.name} onClose={close} footer={<RevokeButton token={token} onRevoked={close} />}>
      <Details
        items={[
          ['Scopes', listScopes(token.scopes)],
          ['Created', <RelativeTime key="created" time={token.created} />],
          ['Last used', token.used ? <RelativeTime key="used" time={token.used} /> : 'Never'],
          ['Expires', <TokenExpiry key="expires" {...token} />],
        ]}
      />
    </SidePanel>
  )
}

function RevokeButton({
  token: { _id: id, name },
  onRevoked,
}: {
  token: OperatorToken
  onRevoked: () => Promise<unknown>
}) {
  const revoke = useMutation({
    mutationFn: () => operatorApi.DELETE('/operator/tokens/{id}', { params: { path: { id } } }),
    onSuccess: async () => {
      await onRevoked()
      await refetchOperator()
      showNotice(`The token ${name} was revoked.`)
    },
    onError: showProblem,
  })
  const confirmAndRevoke = async () => {
    const text = 'Requests that use it are refused from then on.'
    if (await confirmAction({ title: `Revoke the token ${name}?`, text, action: 'Revoke token' })) revoke.mutate()
  }
  return (
    <Button variant="light" color="red" ml="auto" onClick={confirmAndRevoke} loading={revoke.isPending}>
      Revoke
    </Button>
  )
}
