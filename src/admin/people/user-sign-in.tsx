import { Button, PasswordInput, Stack, Switch, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { sendWithProof } from '../api/proof'
import type { User, UserSignInState } from '../api/schema'
import { toProviderName } from '../sign-in/provider-buttons'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { showNotice, showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { StateTag } from '../ui/state-tag'
import { refetchUsers, signInStateQuery, toUserLabel } from './user-queries'

type Part = 'totp' | 'passkeys' | 'sessions' | 'api-tokens'

/** What an admin can take away when it may be in wrong hands, or when its owner has lost it. */
const removals: Record<Part, { question: string; text: string; action: string; notice: string }> = {
  totp: {
    question: 'Reset the second factor of',
    text: 'The user then signs in with the password alone, until they set up another one.',
    action: 'Reset second factor',
    notice: 'The second factor was reset.',
  },
  passkeys: {
    question: 'Remove all passkeys of',
    text: 'The user then signs in by another way, and can register new ones.',
    action: 'Remove passkeys',
    notice: 'The passkeys were removed.',
  },
  sessions: {
    question: 'End all sessions of',
    text: 'The user has to sign in again on each device.',
    action: 'End sessions',
    notice: 'The sessions have ended.',
  },
  'api-tokens': {
    question: 'Delete all API tokens of',
    text: 'Programs that use them are refused from then on.',
    action: 'Delete API tokens',
    notice: 'The API tokens were deleted.',
  },
}

async function removePart(user: User, part: Part) {
  const { question, text, action, notice } = removals[part]
  if (!(await confirmAction({ title: `${question} ${toUserLabel(user)}?`, text, action }))) return
  await fetchData(api.DELETE(`/api/users/{id}/${part}`, { params: { path: { id: user._id } } }))
  await refetchUsers()
  showNotice(notice)
}

/** By what a user signs in, and what an admin can take away. */
export function UserSignIn({ user }: { user: User }) {
  const { data: state, error } = useQuery(signInStateQuery(user._id))
  if (error) return <ProblemMessage error={error} />
  if (!state) return null
  return (
    <>
      <Details items={describeState(user, state)} />
      <Stack gap={0} mt="md">
        <RemovablePart user={user} part="totp" label="Second factor" value={state.secondFactor ? 'on' : undefined} />
        <RemovablePart user={user} part="passkeys" label="Passkeys" value={state.passkeys} />
        <RemovablePart user={user} part="sessions" label="Sessions" value={state.sessions} />
        <RemovablePart user={user} part="api-tokens" label="API tokens" value={state.apiTokens} />
      </Stack>
      <NewPassword user={user} hasPassword={state.password} />
    </>
  )
}

const describeState = (user: User, { emailVerified, pendingEmail, lastActive, providers }: UserSignInState) =>
  [
    [
      'E-mail address',
      user.email ? (
        <>
          {user.email}{' '}
          <StateTag label={emailVerified ? 'confirmed' : 'not confirmed'} tone={emailVerified ? 'good' : 'warning'} />
        </>
      ) : (
        'none'
      ),
    ],
    ['New address', pendingEmail && `${pendingEmail}, once it is confirmed`],
    ['Last active', lastActive ? <RelativeTime time={lastActive} /> : 'not within 30 days'],
    ['Created', <RelativeTime key="created" time={user.created} />],
    ['Providers', providers.map(toProviderName).join(', ')],
  ] as const

type RemovablePartProps = { user: User; part: Part; label: string; value?: string | number }

function RemovablePart({ user, part, label, value }: RemovablePartProps) {
  return (
    <PanelSection
      title={`${label}: ${value || 'none'}`}
      action={
        value ? (
          <Button variant="default" onClick={() => removePart(user, part).catch(showProblem)}>
            {removals[part].action}
          </Button>
        ) : undefined
      }
    />
  )
}

function NewPassword({ user, hasPassword }: { user: User; hasPassword: boolean }) {
  const [password, setPassword] = useState('')
  const [endTokens, setEndTokens] = useState(false)
  const save = useMutation({
    mutationFn: () =>
      sendWithProof((proof) => {
        const body = { password, ...(endTokens && { endTokens }), ...proof }
        return fetchData(api.PUT('/api/users/{id}', { params: { path: { id: user._id } }, body }))
      }),
    onSuccess: async () => {
      setPassword('')
      await refetchUsers()
      showNotice('The password was changed, and the sessions of the user have ended.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const flaw = findFieldError(save.error, 'password')
  return (
    <PanelSection title={hasPassword ? 'Password' : 'Password: none'}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm" align="flex-start">
          <PasswordInput
            label="New password"
            description="It ends all sessions of the user."
            autoComplete="new-password"
            w="100%"
            value={password}
            error={flaw}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Switch
            size="xs"
            label="Delete the API tokens, too"
            checked={endTokens}
            onChange={(event) => setEndTokens(event.currentTarget.checked)}
          />
          {save.error && !flaw && <ProblemMessage error={save.error} />}
          <Button type="submit" variant="default" loading={save.isPending} disabled={!password}>
            {hasPassword ? 'Change password' : 'Set password'}
          </Button>
          {!hasPassword && (
            <Text size="xs" c="dimmed">
              Without a password, the user signs in by a passkey, a provider, or a mailed link that sets one.
            </Text>
          )}
        </Stack>
      </form>
    </PanelSection>
  )
}
