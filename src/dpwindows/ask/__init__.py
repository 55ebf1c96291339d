"""What is asked, in public facts only: queries, the unit of privacy, the budget, the timeline, and its windows."""
