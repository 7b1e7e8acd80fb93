import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { AtollError, type Client, type Kinds, type SignInInit } from './index'
import type { QuerySettings } from './query-settings'

/** Hooks for signing in and out, and for the workspace that somebody works in. */
export function createSessionHooks<B extends Kinds<B>>(client: Client<B>, scope: string) {
  const meKey = [scope, 'me']

  /** A mutation that changes the user or the workspace, after which everything is loaded again. */
  function useSessionMutation<Variables, Result>(run: (variables: Variables) => Promise<Result>) {
    const queryClient = useQueryClient()
    return useMutation({ mutationFn: run, onSuccess: () => queryClient.resetQueries({ queryKey: [scope] }) })
  }

  return {
    /**
     * The profile of the signed-in user, null for a guest, and undefined while that is not known. Follows sign-ins and
     * sign-outs, in the mode `token` those of all tabs.
     * @example
     * const { data: me, isPending } = useMe()
     * const greeting = isPending ? 'One moment' : me ? `Hello, ${me.fullName}` : 'Please sign in'
     */
    useMe(settings: QuerySettings = {}) {
      const queryClient = useQueryClient()
      useEffect(
        () =>
          client.onSession((session) => {
            // A guest whose first request is refused has not signed out.
            if (session || queryClient.getQueryData(meKey)) void queryClient.resetQueries({ queryKey: [scope] })
          }),
        [queryClient],
      )
      return useQuery({
        queryKey: meKey,
        queryFn: ({ signal }) =>
          client.me({ signal }).catch((error) => {
            if (error instanceof AtollError && error.status === 401) return null
            throw error
          }),
        ...settings,
      })
    },

    /**
     * Signs in by password.
     * @example
     * const signIn = useSignIn()
     * const submit = () => signIn.mutate({ username: 'grace', password: 'correct horse battery' })
     */
    useSignIn: (init: SignInInit = {}) =>
      useSessionMutation((credentials: Parameters<Client<B>['signIn']>[0]) => client.signIn(credentials, init)),

    /**
     * Creates an account and signs in.
     * @example
     * const signUp = useSignUp()
     * const submit = () => signUp.mutate({ username: 'ada', password: 'correct horse battery' })
     */
    useSignUp: () => useSessionMutation((account: Parameters<Client<B>['signUp']>[0]) => client.signUp(account)),

    /**
     * Signs out.
     * @example
     * const signOut = useSignOut()
     * const leave = () => signOut.mutate()
     */
    useSignOut: () => useSessionMutation<void, void>(() => client.signOut()),

    /**
     * Makes a workspace the active one. All queries are loaded again.
     * @example
     * const activate = useActivateWorkspace()
     * const open = (id: string) => activate.mutate(id)
     */
    useActivateWorkspace: () => useSessionMutation((id: string) => client.workspaces.activate(id)),
  }
}
