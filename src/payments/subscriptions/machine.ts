export type Status = 'pending' | 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired'
