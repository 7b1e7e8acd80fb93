import { Button, CloseButton, Text } from '@mantine/core'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import type { Invite, NewInvite, WorkspaceDetails } from '../api/schema'
import { getNamedTenant } from '../api/session'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { CopyButton } from '../ui/copy-button'
import { showNotice, showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { WORKSPACE_ROLES } from './workspace-members'
import { refetchWorkspaces } from './workspace-queries'

const FORM_ID = 'invite'

const fields: FormField[] = [
  { key: 'email', title: 'E-mail address', type: 'email', required: true },
  { key: 'name', title: 'Name', type: 'string' },
  {
    key: 'roles',
    title: 'Roles in the workspace',
    type: 'string',
    multi: true,
    enum: WORKSPACE_ROLES,
    default: ['member'],
  },
]

/** Returns the address of the page where an invited person answers, after a sign-in with the invited address. */
function toAnswerLink(): string {
  const tenant = getNamedTenant()
  return `${location.origin}/admin/account${tenant ? `?tenant=${encodeURIComponent(tenant)}` : ''}`
}

async function sendInvite(id: string, values: FormValues) {
  const body = values as NewInvite
  const invite = await fetchData(api.POST('/api/workspaces/{id}/invites', { params: { path: { id } }, body }))
  await refetchWorkspaces()
  showNotice(`${invite.email} was invited by mail.`)
}

async function withdrawInvite({ _id: id, name }: WorkspaceDetails, { _id: inviteId, email }: Invite) {
  const title = `Withdraw the invitation of ${email}?`
  const text = `This person can then no longer join ${name}.`
  if (!(await confirmAction({ title, text, action: 'Withdraw invitation' }))) return
  await fetchData(api.DELETE('/api/workspaces/{id}/invites/{inviteId}', { params: { path: { id, inviteId } } }))
  await refetchWorkspaces()
}

/** The invitations that nobody has answered yet, and a form for another one. */
export function WorkspaceInvites({ workspace }: { workspace: WorkspaceDetails }) {
  const [formNumber, setFormNumber] = useState(0)
  return (
    <>
      <PanelSection title="Invite a person">
        <FieldForm
          key={formNumber}
          id={FORM_ID}
          fields={fields}
          draftKey={`invite:${workspace._id}`}
          save={(_, values) => sendInvite(workspace._id, values)}
          onSaved={() => setFormNumber(formNumber + 1)}
        />
        <Button type="submit" form={FORM_ID} mt="sm">
          Invite
        </Button>
      </PanelSection>
      <PanelSection
        title="Waiting for an answer"
        action={
          workspace.invites.length > 0 && (
            <CopyButton value={toAnswerLink()}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? 'Copied' : 'Copy link'}
                </Button>
              )}
            </CopyButton>
          )
        }
      >
        <RowList
          label="Invitations"
          rows={workspace.invites}
          rowKey={({ _id }) => _id}
          empty="No pending invitations."
          render={(each) => ({
            title: each.name ? `${each.name} (${each.email})` : each.email,
            text: (
              <>
                {each.roles.join(', ')} · invited <RelativeTime time={each.created} />
              </>
            ),
            actions: (
              <CloseButton
                aria-label={`Withdraw the invitation of ${each.email}`}
                onClick={() => withdrawInvite(workspace, each).catch(showProblem)}
              />
            ),
          })}
        />
        {workspace.invites.length > 0 && (
          <Text size="xs" c="dimmed" mt="xs">
            The link is the same for everybody: whoever signs in there with an invited and confirmed address can accept.
          </Text>
        )}
      </PanelSection>
    </>
  )
}
