import { Button, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { findFieldError } from '../api/problem'
import { SignInProblem } from './sign-in-problem'

type AddressFormProps<Sent> = {
  /** Requests the mail. */
  send: (email: string) => Promise<Sent>
  onSent: (sent: Sent) => void
  children?: ReactNode
}

/** Asks for an e-mail address and requests a mail to it. `children` say which one. */
export function AddressForm<Sent>({ send, onSent, children }: AddressFormProps<Sent>) {
  const [email, setEmail] = useState('')
  const sending = useMutation({ mutationFn: () => send(email), onSuccess: onSent })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    sending.mutate()
  }
  const flaw = findFieldError(sending.error, 'email')
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        {children}
        <TextInput
          label="E-mail address"
          type="email"
          autoComplete="email"
          autoFocus
          value={email}
          error={flaw}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        {sending.error && !flaw && <SignInProblem error={sending.error} />}
        <Button type="submit" size="sm" loading={sending.isPending}>
          Send the mail
        </Button>
      </Stack>
    </form>
  )
}
