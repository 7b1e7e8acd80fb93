import { Anchor, Button, Divider, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Plugin } from '../../api/schema'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { RelativeTime } from '../../ui/relative-time'
import { pluginQuery } from './plugin-queries'
import { SecretDialog } from './secret-dialog'

type IssuedSecret = { title: string; secret: string; note: ReactNode }

/** The secret that signs, the token by which a plugin calls back, and its manifest. */
export function PluginAccess({ plugin: { _id: id, manifestUrl } }: { plugin: Plugin }) {
  const [issued, setIssued] = useState<IssuedSecret>()
  const params = { path: { id } }
  const refresh = () => queryClient.invalidateQueries({ queryKey: pluginQuery(id).queryKey })
  const rotate = async () => {
    const text = 'The former secret signs for another 24 hours. Give the plugin the new one within that time.'
    if (!(await confirmAction({ title: 'Replace the secret?', text, action: 'Replace secret' }))) return
    const { secret, formerUntil } = await fetchData(api.POST('/api/plugins/{id}/rotate-secret', { params }))
    const note = (
      <>
        The former secret signs until <RelativeTime time={formerUntil} />.
      </>
    )
    setIssued({ title: 'New secret', secret, note })
  }
  const issueToken = async () => {
    const text = 'The current token of the plugin is revoked immediately.'
    if (!(await confirmAction({ title: 'Create a token for the plugin?', text, action: 'Create token' }))) return
    const { token, user } = await fetchData(api.POST('/api/plugins/{id}/token', { params }))
    const note = (
      <>
        It belongs to{' '}
        <Anchor component={Link} to={`/people/users/${encodeURIComponent(user)}`} size="sm" underline="always">
          a user of its own
        </Anchor>
        .
      </>
    )
    setIssued({ title: 'Token', secret: token, note })
  }
  const reload = useMutation({
    mutationFn: () => fetchData(api.POST('/api/plugins/{id}/reload', { params })),
    onSuccess: () => showNotice('The manifest was read again.'),
    onError: showProblem,
    onSettled: refresh,
  })
  return (
    <>
      <Text size="sm" mb="xs">
        The plugin checks by its secret that events come from here.
      </Text>
      <Button variant="default" onClick={() => rotate().catch(showProblem)}>
        Replace secret
      </Button>
      <Divider my="md" />
      <Text size="sm" mb="xs">
        With a token, the plugin calls the API as a user of its own.
      </Text>
      <Button variant="default" onClick={() => issueToken().catch(showProblem)}>
        Create token
      </Button>
      {manifestUrl && (
        <>
          <Divider my="md" />
          <Text size="sm" mb="xs">
            The manifest describes the plugin. Reading it again replaces what is in the form.
          </Text>
          <Button variant="default" onClick={() => reload.mutate()} loading={reload.isPending}>
            Read manifest again
          </Button>
        </>
      )}
      {issued && (
        <SecretDialog title={issued.title} secret={issued.secret} onClose={() => setIssued(undefined)}>
          {issued.note}
        </SecretDialog>
      )}
    </>
  )
}
