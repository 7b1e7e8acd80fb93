import { Button, PasswordInput, Stack, Switch } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { sendWithProof } from '../api/proof'
import type { Me } from '../api/schema'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { refetchAccount } from './account-queries'

/** Changes the password of the user. */
export function PasswordSection({ me }: { me: Me }) {
  const [currentPassword, setCurrentPassword] = useState('')
  const [password, setPassword] = useState('')
  const [endTokens, setEndTokens] = useState(false)
  const change = useMutation({
    mutationFn: () => {
      const body = { password, ...(currentPassword && { currentPassword }), ...(endTokens && { endTokens }) }
      return sendWithProof((proof) => fetchData(api.POST('/api/me', { body: { ...body, ...proof } })))
    },
    onSuccess: async () => {
      setCurrentPassword('')
      setPassword('')
      setEndTokens(false)
      await refetchAccount()
      showNotice('Your password was changed. Your other sessions have ended.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  const errorOf = (key: string) => findFieldError(change.error, key)
  return (
    <PanelSection title="Password" order={2}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm" align="flex-start">
          <input type="text" autoComplete="username" value={me.username} readOnly hidden />
          <PasswordInput
            w="100%"
            label="Current password"
            description="Leave it empty if you have none yet."
            autoComplete="current-password"
            value={currentPassword}
            error={errorOf('currentPassword')}
            onChange={(event) => setCurrentPassword(event.currentTarget.value)}
          />
          <PasswordInput
            w="100%"
            label="New password"
            description="At least 8 characters. It ends your other sessions."
            autoComplete="new-password"
            value={password}
            error={errorOf('password')}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Switch
            size="xs"
            label="Also delete my API tokens"
            checked={endTokens}
            onChange={(event) => setEndTokens(event.currentTarget.checked)}
          />
          {change.error && !errorOf('currentPassword') && !errorOf('password') && (
            <ProblemMessage m={0} error={change.error} />
          )}
          <Button type="submit" variant="default" loading={change.isPending} disabled={!password}>
            Change password
          </Button>
        </Stack>
      </form>
    </PanelSection>
  )
}
