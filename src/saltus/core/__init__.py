"""What every study shares: settings, claims, records, the store. It knows no paper and no model."""
