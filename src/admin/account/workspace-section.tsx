import { Anchor, Button, Group } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { InvitationAnswer, Me } from '../api/schema'
import { invitationsQuery, ownWorkspacesQuery, refetchWorkspaces } from '../people/workspace-queries'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'

/** The invitations to workspaces that the user has not answered yet. */
export function InvitationSection() {
  const { data: invitations = [] } = useQuery(invitationsQuery)
  const answer = useMutation({
    mutationFn: (body: InvitationAnswer) => fetchData(api.POST('/api/invites', { body })),
    onSettled: refetchWorkspaces,
  })
  if (!invitations.length) return null
  return (
    <PanelSection title="Invitations" order={2}>
      {answer.error && <ProblemMessage m={0} error={answer.error} />}
      <RowList
        label="Invitations"
        rows={invitations}
        rowKey={({ _id }) => _id}
        empty=""
        render={({ workspace: { _id: workspace, name }, roles, created }) => ({
          title: name,
          text: (
            <>
              as {roles.join(', ')} · <RelativeTime time={created} />
            </>
          ),
          actions: (
            <Group gap="xs" wrap="nowrap">
              <Button disabled={answer.isPending} onClick={() => answer.mutate({ workspace, kind: 'accept' })}>
                Accept
              </Button>
              <Button
                variant="default"
                disabled={answer.isPending}
                onClick={() => answer.mutate({ workspace, kind: 'decline' })}
              >
                Decline
              </Button>
            </Group>
          ),
        })}
      />
    </PanelSection>
  )
}

/** The workspaces of the user, the active one marked. */
export function WorkspaceSection({ me }: { me: Me }) {
  const { data: workspaces } = useQuery(ownWorkspacesQuery)
  const activate = useMutation({
    mutationFn: (id: string) => fetchData(api.POST('/api/workspaces/{id}/activate', { params: { path: { id } } })),
    // What the user sees depends on the active workspace.
    onSuccess: () => queryClient.invalidateQueries(),
  })
  return (
    <PanelSection title="Workspaces" order={2}>
      {activate.error && <ProblemMessage m={0} error={activate.error} />}
      <RowList
        label="Workspaces"
        rows={workspaces}
        rowKey={({ _id }) => _id}
        empty="You are a member of no workspace."
        render={({ _id, name, labels }) => ({
          title: (
            <>
              <Anchor component={Link} to={`/people/workspaces/${_id}`}>
                {name}
              </Anchor>
              {me.workspace?._id === _id && <StateTag label="active" tone="good" />}
            </>
          ),
          text: labels.join(', '),
          actions: me.workspace?._id !== _id && (
            <Button variant="subtle" color="gray" onClick={() => activate.mutate(_id)}>
              Activate
            </Button>
          ),
        })}
      />
    </PanelSection>
  )
}
