import { Anchor, Button, PasswordInput, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { SignInProblem } from './sign-in-problem'

/** Says why a sign-in by mail removed the password, and lets the user choose another one at once. */
export function RemovedPasswordForm({ onDone }: { onDone: () => void }) {
  const [password, setPassword] = useState('')
  const change = useMutation({
    mutationFn: () => fetchData(api.POST('/api/me', { body: { password } })),
    onSuccess: onDone,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  const flaw = findFieldError(change.error, 'password')
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <Text size="sm">
          You are signed in. Your address had not been confirmed before, so somebody else could have set the password of
          this account. It was removed. Choose a new one, or go on signing in by e-mail.
        </Text>
        <PasswordInput
          label="New password"
          description="At least 8 characters."
          autoComplete="new-password"
          autoFocus
          value={password}
          error={flaw}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        {change.error && !flaw && <SignInProblem error={change.error} />}
        <Button type="submit" size="sm" loading={change.isPending} disabled={!password}>
          Save the password
        </Button>
        <Text size="sm">
          <Anchor component="button" type="button" onClick={onDone}>
            Continue without a password
          </Anchor>
        </Text>
      </Stack>
    </form>
  )
}
